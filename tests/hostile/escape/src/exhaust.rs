//! Tools that use up everything that is limited for a call: time, memory, stack, calls, handles, log lines.

use std::hint::black_box;
use std::io::Write;
use std::time::Duration;

use linux_sysadmin_sdk::prelude::*;

use crate::{Seen, seen};

pub(crate) fn spin(_: NoArgs, _: &Context) -> Result<Single<Seen>> {
    let mut number = 0_u64;
    loop {
        number = black_box(number.wrapping_add(1));
    }
}

pub(crate) fn recurse(_: NoArgs, _: &Context) -> Result<Single<Seen>> {
    seen(deeper(black_box(1), black_box(0)).to_string())
}

/// Recurses without an end. Its frames keep nothing in memory, so the engine's own stack runs out.
fn deeper(number: u64, end: u64) -> u64 {
    match number == end {
        true => number,
        // The compiler would make a loop of a tail call or a sum.
        false => deeper(number.wrapping_mul(3) | 1, end).rotate_left(7) ^ number,
    }
}

pub(crate) fn memory(_: NoArgs, _: &Context) -> Result<Single<Seen>> {
    let mut all = Vec::new();
    loop {
        all.push(black_box(vec![1_u8; 1 << 20]));
    }
}

pub(crate) fn trap(_: NoArgs, _: &Context) -> Result<Single<Seen>> {
    panic!("on purpose")
}

pub(crate) fn calls(_: NoArgs, cx: &Context) -> Result<Single<Seen>> {
    loop {
        let _ = cx.distro();
    }
}

/// Hands over 20 MiB in one call.
pub(crate) fn hand_over(_: NoArgs, cx: &Context) -> Result<Single<Seen>> {
    seen(cx.read(&"x".repeat(20 << 20)).err().map(|problem| problem.code).unwrap_or_default())
}

/// Sleeps for ever, without computing.
pub(crate) fn sleep(_: NoArgs, cx: &Context) -> Result<Single<Seen>> {
    loop {
        cx.sleep(Duration::from_secs(1 << 30));
    }
}

/// Makes calls that are not in the contract, and that take the host's time and not the guest's.
pub(crate) fn clock(_: NoArgs, cx: &Context) -> Result<Single<Seen>> {
    loop {
        black_box(cx.now());
    }
}

/// Prints ten million lines, and then a gigabyte.
pub(crate) fn print(_: NoArgs, _: &Context) -> Result<Single<Seen>> {
    let mut log = std::io::stderr().lock();
    let lines = "printed by a guest\n".repeat(10_000);
    let piece = "x".repeat(1 << 20);
    let mut refused = 0;
    for text in std::iter::repeat_n(&lines, 1000).chain(std::iter::repeat_n(&piece, 1024)) {
        refused += u32::from(log.write_all(text.as_bytes()).is_err());
    }
    seen(format!("{refused} refused"))
}

/// Reports a gigabyte as progress before the calls run out.
pub(crate) fn progress(_: NoArgs, cx: &Context) -> Result<Single<Seen>> {
    let message = "reported by a guest ".repeat(6_000);
    loop {
        cx.progress(Some(0.5), &message);
    }
}

/// Starts commands, reads from them and never drops them.
#[cfg(target_family = "wasm")]
pub(crate) fn streams(_: NoArgs, _: &Context) -> Result<Single<Seen>> {
    use linux_sysadmin_sdk::bindings::sysadmin::module::exec_command;

    loop {
        std::mem::forget(exec_command::open(&Command::new("sleep").arg("86399"))?);
    }
}

/// Waits for clocks and never drops them.
#[cfg(target_family = "wasm")]
pub(crate) fn handles(_: NoArgs, _: &Context) -> Result<Single<Seen>> {
    loop {
        std::mem::forget(wasip2::clocks::monotonic_clock::subscribe_duration(u64::MAX));
    }
}

#[cfg(not(target_family = "wasm"))]
pub(crate) use {trap as handles, trap as streams};
