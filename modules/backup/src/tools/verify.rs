//! `bak_verify`: a backup against its manifest and against the live files.

use linux_sysadmin_sdk::prelude::*;

use crate::answer::Said;
use crate::engine;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct VerifyArgs {
    /// From bak_list
    backup_id: String,
    /// URI or path of the backups
    destination: String,
}

#[derive(Serialize)]
struct Finding {
    /// `corrupt`, `missing`, `changed` or `extra`.
    kind: &'static str,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

#[derive(Serialize)]
pub(crate) struct Answer {
    backup_id: String,
    /// The entries of the manifest.
    entries: i64,
    /// The entries that aren't in the backup as they were written.
    corrupt: i64,
    /// The entries that are no longer live.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<i64>,
    /// The entries whose live file is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    changed: Option<i64>,
    /// The live files that the backup hasn't.
    #[serde(skip_serializing_if = "Option::is_none")]
    new: Option<i64>,
    /// The files in the backup that its manifest hasn't.
    extra: i64,
    /// The first ones of each kind.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    findings: Vec<Finding>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

pub(crate) fn verify(args: VerifyArgs, cx: &Context) -> Result<Analysis<Answer>> {
    let (destination, _) = super::destination(&args.destination, cx)?;
    let id = match args.backup_id.as_str() {
        "latest" => super::list::latest(&destination, cx)?,
        id => {
            super::check_id(id)?;
            engine::ready(cx)?;
            id.to_owned()
        }
    };
    let said = Said::by(cx.run(engine::verify(&destination, &id)))?;
    let count = |key| said.number(key);
    let kinds = ["corrupt", "missing", "changed", "extra"].into_iter();
    let findings =
        kinds.flat_map(|kind| said.findings(kind).map(move |(path, why)| Finding { kind, path, why }));
    let corrupt = count("corrupt").ok_or_else(|| Problem::unexpected("the verification", ""))?;
    let answer = Answer {
        backup_id: id.clone(),
        entries: count("entries").unwrap_or_default(),
        corrupt,
        missing: count("missing"),
        changed: count("changed"),
        new: count("new"),
        extra: count("extra").unwrap_or_default(),
        findings: findings.collect(),
        notes: said.notes(),
    };
    let (missing, changed) = (answer.missing.unwrap_or_default(), answer.changed.unwrap_or_default());
    let mut summary = match corrupt {
        0 => "the backup is whole".to_owned(),
        // restic never stores again what it believes to have.
        _ if destination.is_repository() => format!(
            "{corrupt} files are corrupt in the repository: an older backup may have them whole, and bak_create to another \
             repository copies all anew"
        ),
        // An ordinary backup would link to the bad copy again.
        _ => format!("{corrupt} entries are corrupt in the backup: bak_create full=true copies all anew"),
    };
    if missing > 0 {
        summary.push_str(&format!(
            "; {missing} are no longer live: bak_restore backup_id={id} paths=[…] brings them back"
        ));
    }
    if changed > 0 {
        summary.push_str(&format!("; {changed} were changed since"));
    }
    let severity = match corrupt > 0 || answer.notes.iter().any(|note| note.contains("manifest")) {
        true => Severity::High,
        false => Severity::Info,
    };
    Ok(Analysis { data: answer, summary, severity })
}
