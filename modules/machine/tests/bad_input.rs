//! Tests what `machine_info` answers where files are missing, odd or many, and what it refuses.
#![allow(clippy::unwrap_used)]

use linux_sysadmin_sdk::testkit::FakeTarget;
use module_machine::module;
use serde_json::{Value, json};

const DMI: &str = "/sys/class/dmi/id";

fn info(target: FakeTarget, arguments: Value) -> Value {
    target.call(&module(), "machine_info", arguments).unwrap().0
}

#[test]
fn a_machine_that_shows_nothing_still_has_its_system() {
    let data = info(FakeTarget::new(), json!({}));
    assert_eq!(
        data,
        json!({
            "system": {"hostname": "fake", "distribution": "Debian GNU/Linux 12", "kernel": "6.1.0", "architecture": "x86_64"},
            "cpu": {},
        })
    );
}

#[test]
fn sections_that_are_no_sections_are_refused() {
    for (arguments, named) in
        [(json!({"sections": []}), "sections is empty"), (json!({"sections": ["fans"]}), "`fans`")]
    {
        let problem = FakeTarget::new().call(&module(), "machine_info", arguments).unwrap_err();
        assert_eq!(problem.code, "INVALID_ARGUMENTS");
        assert!(problem.message.contains(named) && problem.message.contains("dmi"), "{}", problem.message);
    }
}

#[test]
fn placeholders_of_vendors_are_left_out_and_other_bytes_are_marked() {
    let target = FakeTarget::new()
        .file(&format!("{DMI}/sys_vendor"), b"Fujitsu \xfc AG  \n".to_vec())
        .file(&format!("{DMI}/product_name"), "To Be Filled By O.E.M.\n")
        .file(&format!("{DMI}/bios_version"), "\n")
        .file("/proc/device-tree/model", "Raspberry Pi 4 Model B Rev 1.4\0");
    let data = info(target, json!({"sections": ["dmi"]}));
    assert_eq!(
        data["dmi"],
        json!({"vendor": "Fujitsu \u{fffd} AG", "product": "Raspberry Pi 4 Model B Rev 1.4"})
    );
}

#[test]
fn serial_numbers_are_read_only_where_they_are_asked_for() {
    let target = || FakeTarget::new().file(&format!("{DMI}/product_serial"), "CZC1234567\n");
    let asked = json!({"sections": ["dmi"]});
    let (data, reply) = target().call(&module(), "machine_info", asked).unwrap();
    assert_eq!((data, reply.notes), (json!({}), vec!["the machine shows nothing of dmi".to_owned()]));
    assert_eq!(info(target(), json!({"serials": true}))["dmi"], json!({"serial": "CZC1234567"}));
}

#[test]
fn a_thousand_cpus_are_counted() {
    let mut target = FakeTarget::new()
        .file("/sys/devices/system/cpu/present", "0-999\n")
        .file("/sys/devices/system/cpu/online", "0-995\n");
    for cpu in 0..996 {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology");
        let first = cpu / 2 * 2;
        let socket = if cpu < 498 { "0-497" } else { "498-995" };
        target = target
            .file(&format!("{path}/thread_siblings_list"), format!("{first}-{}\n", first + 1))
            .file(&format!("{path}/core_siblings_list"), socket);
    }
    let cpu = info(target, json!({"sections": ["cpu"]}))["cpu"].clone();
    let expected = json!({
        "cpus": 1000, "offline": "996-999", "sockets": 2, "cores_per_socket": 249, "threads_per_core": 2,
    });
    assert_eq!(cpu, expected);
}

#[test]
fn secrets_of_the_kernels_command_line_are_not_shown() {
    let target = FakeTarget::new().file("/proc/cmdline", "quiet rootpw=s3cret-word\n").secret("s3cret-word");
    let data = info(target, json!({"sections": ["system"]}));
    assert_eq!(data["system"]["command_line"], "quiet rootpw=[redacted]");
}

#[test]
fn devices_are_counted_in_short_and_listed_in_full() {
    let pci = "/sys/bus/pci/devices/0000:00:03.0/uevent";
    let usb = "/sys/bus/usb/devices";
    let target = || {
        FakeTarget::new()
            .file(pci, "DRIVER=virtio-pci\nPCI_CLASS=20000\nPCI_ID=1AF4:1041\n")
            .file(&format!("{usb}/usb1/idVendor"), "1d6b\n")
            .file(&format!("{usb}/1-1/idVendor"), "0951\n")
            .file(&format!("{usb}/1-1/idProduct"), "1666\n")
            .file(&format!("{usb}/1-1/product"), "DataTraveler 3.0\n")
            .file("/sys/block/vda/size", "268435456\n")
            .file("/sys/block/loop0/size", "8\n")
            .file("/sys/block/sda/size", "0\n")
            // An empty drive of QEMU.
            .file("/sys/block/sr0/size", "2097151\n")
            .file("/sys/class/net/eth0/device/uevent", "DRIVER=virtio_net\n")
            .file("/sys/class/net/eth0/speed", "-1\n")
    };
    let short = info(target(), json!({}));
    assert_eq!((&short["pci"], &short["usb"]), (&json!({"network": 1}), &json!(1)));
    let full = info(target(), json!({"sections": ["pci", "usb", "disks", "network"]}));
    let expected = json!({
        "pci": [{"slot": "00:03.0", "class": "network", "id": "1af4:1041", "driver": "virtio-pci"}],
        "usb": [{"id": "0951:1666", "product": "DataTraveler 3.0"}],
        "disks": [{"name": "vda", "size_gb": 128.0}],
        "network": [{"name": "eth0", "driver": "virtio_net"}],
    });
    assert_eq!(full, expected);
}
