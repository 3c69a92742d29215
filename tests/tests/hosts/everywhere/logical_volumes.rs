//! Tests on a real host how volumes are listed, made and grown, by the real LVM on a loop device. The kernel has no device
//! mapper, so that no volume is active: LVM changes its metadata alone, and what needs a volume's device fails.

use linux_sysadmin_tests::{Changing, Client, DISKS, NO_DISKS, way};
use serde_json::{Value, json};

/// Makes the group `lsa-vg` with 124 MiB.
const PREPARE: &str = r"
cp -a /etc/lvm/lvmlocal.conf /run/lsa-lvmlocal.conf
printf 'global { activation = 0 }\n' > /etc/lvm/lvmlocal.conf
disk lvm 128M
pvcreate --quiet $device
vgcreate --quiet lsa-vg $device
";

const CLEAN: &str = r"
vgremove --yes --force lsa-vg
test ! -e /run/lsa-lvmlocal.conf || mv /run/lsa-lvmlocal.conf /etc/lvm/lvmlocal.conf
rm -f /etc/lvm/archive/lsa-vg* /etc/lvm/backup/lsa-vg*
";

fn changing(test: &str) -> Option<Changing> {
    Changing::by(way(), test, &[DISKS, PREPARE].concat(), &[CLEAN, NO_DISKS].concat())
}

/// The volumes and their sizes in MiB, as LVM tells them.
fn volumes(machine: &Changing) -> String {
    machine.sh("lvs --noheadings --units m --nosuffix -o lv_name,lv_size lsa-vg 2> /dev/null | tr -s ' '")
}

/// Makes a change, saying yes to the question.
async fn agreed(client: &mut Client, tool: &str, arguments: &Value) -> Value {
    let mut confirmed = arguments.clone();
    let answer = client.envelope(tool, arguments.clone()).await;
    assert_eq!(answer["status"], "confirmation_required", "{answer}");
    confirmed["confirmed"] = json!(true);
    client.envelope(tool, confirmed).await
}

#[tokio::test]
async fn a_volume_is_made_and_grown() {
    let Some(machine) = changing("a_volume_is_made_and_grown") else { return };
    let mut client = machine.serve_default().await;
    let listed = client.envelope("lvm_status", json!({})).await;
    let group = &listed["data"]["groups"][0];
    assert_eq!((&group["name"], &group["free"]), (&json!("lsa-vg"), &json!("124M")), "{listed}");

    // An older client's names.
    let arguments = json!({"vg": "lsa-vg", "name": "data", "size": "20M", "filesystem": "none"});
    let made = agreed(&mut client, "lvm_create_lv", &arguments).await;
    assert_eq!((&made["status"], &made["data"]["group_free"]), (&json!("success"), &json!("104M")), "{made}");
    assert_eq!(volumes(&machine), " data 20.00\n");
    machine.refuses(&mut client, "lvm_create_lv", &arguments, "LVM_VOLUME_EXISTS").await;

    let arguments = json!({"lv_path": "lsa-vg/data", "size": "+50%FREE", "resize_fs": false});
    let grown = agreed(&mut client, "lvm_resize", &arguments).await;
    assert_eq!((&grown["status"], &grown["data"]["size"]), (&json!("success"), &json!("72M")), "{grown}");
    assert_eq!(volumes(&machine), " data 72.00\n");
    let same = json!({"lv_path": "/dev/lsa-vg/data", "size": "72M"});
    machine.holds_already(&mut client, "lvm_resize", &same).await;
}

#[tokio::test]
async fn a_volume_whose_file_system_cannot_be_made_is_taken_away() {
    let Some(machine) = changing("a_volume_whose_file_system_cannot_be_made_is_taken_away") else { return };
    let mut client = machine.serve_default().await;
    let arguments = json!({"vg_name": "lsa-vg", "lv_name": "web", "size": "100%FREE"});
    let failed = agreed(&mut client, "lvm_create_lv", &arguments).await;
    assert_eq!((&failed["status"], &failed["failed_step"]), (&json!("error"), &json!(1)), "{failed}");
    assert_eq!(failed["not_undone"], json!([]), "{failed}");
    assert_eq!(volumes(&machine), "");
}

#[tokio::test]
async fn what_a_group_has_no_room_for_or_cannot_be_looked_at_is_refused() {
    let Some(machine) = changing("what_a_group_has_no_room_for_or_cannot_be_looked_at_is_refused") else {
        return;
    };
    machine.sh("lvcreate --quiet --extents 5 --name data lsa-vg");
    let mut client = machine.serve_default().await;
    for (tool, arguments, code) in [
        ("lvm_create_lv", json!({"vg_name": "lsa-vg", "lv_name": "x", "size": "1G"}), "LVM_NO_SPACE"),
        (
            "lvm_create_lv",
            json!({"vg_name": "lsa-vg", "lv_name": "snapshot", "size": "4M"}),
            "INVALID_VOLUME_NAME",
        ),
        ("lvm_resize", json!({"lv_path": "lsa-vg/data", "size": "+1G"}), "LVM_NO_SPACE"),
        ("lvm_resize", json!({"lv_path": "lsa-vg/data", "size": "-8M"}), "LVM_VOLUME_INACTIVE"),
        ("lvm_snapshot", json!({"lv_path": "lsa-vg/data", "size": "1G"}), "LVM_NO_SPACE"),
    ] {
        machine.refuses(&mut client, tool, &arguments, code).await;
    }
    // The disk vanishes.
    machine.sh("losetup --detach $(cat /run/lsa-lvm)");
    let gone = json!({"lv_path": "lsa-vg/data", "size": "+4M"});
    machine.refuses(&mut client, "lvm_resize", &gone, "LVM_VOLUME_NOT_FOUND").await;
}
