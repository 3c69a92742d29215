//! `perf_network_io`: shows rates of each interface.

use linux_sysadmin_sdk::prelude::*;

use crate::sample::{Interval, SampleArgs};
use crate::sources::network::{self, Interface, NET_DEV};

pub(crate) fn network_io(args: SampleArgs, cx: &Context) -> Result<Listing<Interface>> {
    let interval = Interval::take(cx, args.sample_ms, || Ok(vec![NET_DEV.to_owned()]))?;
    let notes = Vec::from_iter(interval.rate_note("packet"));
    Ok(Listing { items: network::interfaces(&interval, cx)?, total: None, notes })
}
