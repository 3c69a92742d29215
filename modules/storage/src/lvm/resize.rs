//! `lvm_resize`: another size for a logical volume, and for the file system on it.
//!
//! The file system's steps are steps of their own, and not `lvextend --resizefs`. That runs fsadm, which unmounts and checks as
//! it thinks fit, and a plan would neither show nor undo what it does.

use linux_sysadmin_sdk::{Category, prelude::*};

use super::commands::{EXTEND, REDUCE};
use super::filesystem::{self, Content};
use super::report::{Group, Kind, Lvm, Volume};
use super::uses::Uses;
use crate::file_system_size;
use crate::size::{Amount, Of, Sign, Size, shown};

/// A file system leaves out a last part of the volume that is too small for it. What it lacks then is less than this.
const TOLERANCE: u64 = 4 << 20;

fn yes() -> bool {
    true
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct ResizeArgs {
    /// As /dev/vg0/data
    lv_path: String,
    /// As 20G, +5G, +100%FREE
    size: String,
    /// With its file system
    #[serde(default = "yes")]
    #[schemars(default = "yes")]
    resize_filesystem: bool,
}

#[derive(Serialize)]
pub(super) struct Resized {
    path: String,
    before: String,
    size: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    filesystem: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mounted: Option<String>,
    /// What the group has left, where that is certain. Copies of RAID take more than the volume's size.
    #[serde(skip_serializing_if = "Option::is_none")]
    group_free: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<&'static str>,
}

/// A resize that is about to be planned.
struct Draft<'a> {
    lvm: &'a Lvm,
    group: &'a Group,
    volume: &'a Volume,
    uses: Uses,
    /// The extents before and after.
    before: u64,
    after: u64,
    resizes_filesystem: bool,
}

/// The steps, and what the answer tells of the file system.
#[derive(Default)]
struct Steps {
    steps: Vec<Step>,
    filesystem: Option<String>,
    mounted: Option<String>,
    warnings: Vec<String>,
    notes: Vec<String>,
}

pub(super) fn resize(args: ResizeArgs, cx: &Context) -> Result<Noted<Resized>> {
    let size = Size::parse(&args.size)?;
    let lvm = Lvm::read(cx)?;
    let (group, volume) = lvm.volume(&args.lv_path)?;
    must_be_resizable(volume)?;
    let before = group.extents_for(volume.size);
    let after = wanted(size, before, group)?;
    let uses = Uses::read(cx)?;
    let resizes_filesystem = args.resize_filesystem;
    let draft = Draft { lvm: &lvm, group, volume, uses, before, after, resizes_filesystem };
    let Steps { steps, filesystem, mounted, warnings, notes } = match after.cmp(&before) {
        std::cmp::Ordering::Greater => draft.grow(cx)?,
        std::cmp::Ordering::Equal => draft.fill(cx)?,
        std::cmp::Ordering::Less => draft.shrink(cx)?,
    };
    // The virtual size of a thin volume takes nothing of the group.
    let taken = if volume.kind() == Kind::Thin { 0 } else { after as i128 - before as i128 };
    let left = (i128::from(group.free_extents) - taken).max(0) as u64;
    let is_copied = ["raid", "mirror"].iter().any(|kind| volume.layout.contains(kind));
    let mut data = Resized {
        path: volume.path.clone(),
        before: shown(volume.size),
        size: shown(group.bytes(after)),
        filesystem,
        mounted,
        group_free: (!is_copied).then(|| shown(group.bytes(left))),
        would: None,
    };
    if steps.is_empty() {
        return Ok(Noted { data, notes });
    }
    let verb = if after < before { "Shrink" } else { "Grow" };
    let with = data.filesystem.as_ref().map(|kind| format!(" with its {kind}")).unwrap_or_default();
    let summary = format!("{verb} {}{with} from {} to {}", data.path, data.before, data.size);
    let mut change = Change::new(summary).risk(Risk::Critical).lock(Lock::Lvm);
    change = steps.into_iter().fold(change, Change::step);
    change = warnings.into_iter().fold(change, Change::warning);
    let applied = cx.apply(change).map_err(|failure| explained(failure.into(), volume))?;
    data.would = applied.dry_run.then_some("resize");
    Ok(Noted { data, notes })
}

/// Adds what helps to a check that found more than it repairs unasked.
fn explained(problem: Problem, volume: &Volume) -> Problem {
    if !problem.message.contains("RUN fsck MANUALLY") {
        return problem;
    }
    let path = &volume.path;
    problem.remedy(format!(
        "The file system is damaged, and nothing was changed: command_run argv=[e2fsck,-f,-y,--,{path}] as_root=true repairs \
         what it can"
    ))
}

/// The extents that are asked for.
fn wanted(size: Size, before: u64, group: &Group) -> Result<u64> {
    let invalid = |message: String| Err(Problem::validation("INVALID_SIZE", message));
    let amount = match size.amount {
        // Shrinking rounds the other way: the volume keeps the extent that is needed in part.
        Amount::Bytes(bytes) if size.sign == Sign::Less => bytes / group.extent.max(1),
        Amount::Bytes(bytes) => group.extents_for(bytes),
        Amount::Percent(percent, Of::Group) => group.extents.saturating_mul(percent) / 100,
        Amount::Percent(percent, Of::Free) if size.sign == Sign::More => {
            group.usable_extents().saturating_mul(percent) / 100
        }
        // lvresize takes it as the new size, which shrinks a volume that is larger than what is free.
        Amount::Percent(percent, Of::Free) => {
            return invalid(format!("expected +{percent}%FREE, which adds that part of the free space"));
        }
        Amount::Percent(_, Of::Origin) => {
            return invalid("expected a size such as 20G, +5G, -5G or +100%FREE".to_owned());
        }
    };
    let after = match size.sign {
        Sign::Absolute => amount,
        Sign::More => before.saturating_add(amount),
        Sign::Less => before.saturating_sub(amount),
    };
    match after {
        0 => invalid(format!("nothing would be left of {}", shown(group.bytes(before)))),
        after => Ok(after),
    }
}

/// Refuses what LVM doesn't resize, or not while it is in use.
fn must_be_resizable(volume: &Volume) -> Result<()> {
    let path = &volume.path;
    let refused = |code: &str, message: String| Err(Problem::new(code, Category::State, message));
    match volume.kind() {
        Kind::Origin => {
            let message = format!("{path} has snapshots, and LVM doesn't resize it while they are there");
            refused("LVM_HAS_SNAPSHOTS", message).map_err(|problem| {
                problem.remedy(format!(
                    "lvm_list vg_name={} tells them; command_run argv=[lvremove,--yes,{}/SNAPSHOT] as_root=true removes one",
                    volume.group, volume.group
                ))
            })
        }
        Kind::Other => refused(
            "LVM_NOT_SUPPORTED",
            format!(
                "{path} is a {} volume, or a move or merge of it is under way: this tool doesn't resize it",
                volume.layout
            ),
        ),
        _ => Ok(()),
    }
}

impl Draft<'_> {
    /// Growing has no undo. A volume that is larger than its file system loses nothing, but to cut it off again after the file
    /// system has grown half-way would. The same call again ends what a failure has left.
    fn grow(&self, cx: &Context) -> Result<Steps> {
        let needed = self.after - self.before;
        // A thin volume has a virtual size only.
        if self.volume.kind() != Kind::Thin && needed > self.group.usable_extents() {
            return Err(self.lvm.no_room(self.group, self.group.bytes(needed)));
        }
        let extend = EXTEND.with([self.after.to_string(), self.volume.full_name()]).as_root();
        let extend = Step::run(extend).uninterruptible();
        let mut found = Steps { warnings: self.overcommitted(), ..Steps::default() };
        if !self.has_own_filesystem() {
            found.steps.push(extend);
            return Ok(found);
        }
        let content = filesystem::probe(self.volume, cx)?;
        if content == Content::Nothing {
            found.steps.push(extend);
            found.notes.push(format!("{} holds no file system", self.volume.path));
            return Ok(found);
        }
        let growth = filesystem::growth(self.volume, &content, &self.uses, cx)?;
        found.steps.extend(growth.before);
        found.steps.extend([extend, growth.fill]);
        found.filesystem = content.name().map(str::to_owned);
        found.mounted = growth.mount.map(|mount| mount.point.clone());
        Ok(found)
    }

    /// The volume has the size already. Its file system may not, where it was grown without it or a plan failed half-way.
    fn fill(&self, cx: &Context) -> Result<Steps> {
        let mut found = Steps::default();
        found.notes.push(format!("{} has {} already", self.volume.path, shown(self.volume.size)));
        if !self.has_own_filesystem() || !self.volume.is_active() {
            return Ok(found);
        }
        let content = filesystem::probe(self.volume, cx)?;
        let Ok(growth) = filesystem::growth(self.volume, &content, &self.uses, cx) else { return Ok(found) };
        found.filesystem = content.name().map(str::to_owned);
        found.mounted = growth.mount.map(|mount| mount.point.clone());
        if let Some(size) = growth.size.filter(|size| size.saturating_add(TOLERANCE) <= self.volume.size) {
            found.notes = vec![format!(
                "the volume has the size already, but its file system has {} only",
                shown(size)
            )];
            found.steps.extend(growth.before);
            found.steps.push(growth.fill);
        }
        Ok(found)
    }

    fn shrink(&self, cx: &Context) -> Result<Steps> {
        let (volume, path) = (self.volume, &self.volume.path);
        let refused = |code: &str, message: String| Problem::new(code, Category::State, message);
        if !matches!(volume.kind(), Kind::Plain | Kind::Thin) {
            let message =
                format!("{path} is a {}, which LVM doesn't make smaller while it is in use", self.kind());
            return Err(refused("LVM_NOT_SUPPORTED", message));
        }
        if self.uses.is_swap(volume) {
            return Err(refused("VOLUME_IN_USE", format!("the machine swaps to {path}"))
                .remedy(format!("swap_remove {path} ends that; then shrink it with resize_filesystem=false, and swap_add {path}")));
        }
        let content = filesystem::probe(volume, cx)?;
        let mount = self.uses.mounts(volume).into_iter().next();
        let kind = content.name().map(str::to_owned);
        match &content {
            Content::Xfs => {
                return Err(refused("FILESYSTEM_CANT_SHRINK", format!("{path} holds xfs, which can't get smaller")).remedy(
                    format!(
                        "Make a smaller volume with lvm_create_lv vg_name={}, copy the files, mount it in place of this one",
                        volume.group
                    ),
                ));
            }
            Content::Btrfs => {
                let message = format!("{path} holds btrfs, which this tool only grows");
                let remedy = "btrfs filesystem resize shrinks it while it is mounted; then this call with resize_filesystem=false";
                return Err(refused("FILESYSTEM_CANT_SHRINK", message).remedy(remedy));
            }
            _ => {}
        }
        if let Some(mount) = mount {
            let message = format!(
                "{path} is mounted at {}, and {} gets smaller only while it isn't",
                mount.point, mount.kind
            );
            let problem = refused("FILESYSTEM_MOUNTED", message);
            return Err(match mount.point.as_str() {
                "/" | "/usr" | "/var" => problem
                    .remedy("The running system needs it: start the machine from a rescue system, and shrink it there"),
                point => problem.remedy(format!(
                    "mount_remove mount_point={point} keep_fstab=true unmounts it and tells who keeps it busy; then call this again"
                )),
            });
        }
        filesystem::not_open(volume)?;
        let bytes = self.group.bytes(self.after);
        let reduce = REDUCE.with([self.after.to_string(), volume.full_name()]).as_root();
        let reduce = Step::run(reduce).uninterruptible();
        let lost = format!("what lies behind {} of {path} is lost", shown(bytes));
        let mut found = Steps { filesystem: kind, ..Steps::default() };
        match content {
            Content::Ext(_) => {
                let (count, block) = file_system_size::ext_blocks(path, cx)?;
                let size = count.saturating_mul(block);
                if size > bytes && !self.resizes_filesystem {
                    let message = format!(
                        "the file system on {path} has {}: it would be cut off and lost",
                        shown(size)
                    );
                    return Err(refused("FILESYSTEM_TOO_LARGE", message)
                        .remedy("Call this again with resize_filesystem=true, which shrinks it first"));
                }
                if size > bytes {
                    filesystem::must_fit(path, bytes, block, cx)?;
                    found.steps.extend(filesystem::shrink_ext(path, size, bytes));
                }
                found.warnings.push(
                    "a backup first: a power cut while the file system moves its files can lose some"
                        .to_owned(),
                );
            }
            Content::Nothing | Content::Other(_) if self.resizes_filesystem => {
                let kind = content.name().unwrap_or("no file system that is known");
                let message = format!("{path} holds {kind}, which this tool can't make smaller");
                return Err(refused("FILESYSTEM_UNSUPPORTED", message)
                    .remedy(format!("With resize_filesystem=false the volume alone is shrunk, and {lost}")));
            }
            _ => found.warnings.push(lost),
        }
        found.steps.push(reduce);
        Ok(found)
    }

    /// Whether a file system on the volume has to follow. That in a snapshot is its origin's, and a pool has none.
    fn has_own_filesystem(&self) -> bool {
        self.resizes_filesystem && matches!(self.volume.kind(), Kind::Plain | Kind::Thin)
    }

    fn kind(&self) -> &'static str {
        match self.volume.kind() {
            Kind::Snapshot => "snapshot",
            Kind::ThinPool => "thin pool",
            _ => "volume",
        }
    }

    /// A warning where thin volumes promise more than their pool has.
    fn overcommitted(&self) -> Vec<String> {
        let Some(pool) = self.volume.pool.as_ref().filter(|_| self.volume.kind() == Kind::Thin) else {
            return Vec::new();
        };
        let has = self.group.volumes.iter().find(|volume| volume.name == *pool).map_or(0, |pool| pool.size);
        let thin = self.group.volumes.iter().filter(|volume| volume.pool.as_ref() == Some(pool));
        let promised =
            thin.map(|volume| volume.size).sum::<u64>() - self.volume.size + self.group.bytes(self.after);
        match promised > has {
            true => vec![format!(
                "the thin volumes of {pool} then promise {} and the pool has {}: once it is full, writing fails in all of them",
                shown(promised),
                shown(has)
            )],
            false => Vec::new(),
        }
    }
}
