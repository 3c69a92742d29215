//! `linux-sysadmin audit show`: shows records to a person. Without an id it lists the changes, one in a line.

use std::io::Write;
use std::path::Path;

use clap::Args;

use super::changes::Rows;
use super::filter::Filter;
use super::format;
use crate::cli::screen::Screen;
use crate::cli::text::wrap;
use host_audit::{Liveness, Snapshot};

/// The number of changes in a list without a filter.
const LAST: u32 = 20;

#[derive(Args)]
pub(super) struct Show {
    #[command(flatten)]
    pub filter: Filter,
    /// Show also the calls that changed nothing
    #[arg(long, conflicts_with_all = ["changes", "unfinished", "id"])]
    pub looks: bool,
}

impl Show {
    pub(super) fn run(
        &self,
        directory: &Path,
        screen: Screen,
        out: &mut impl Write,
        err: &mut impl Write,
    ) -> anyhow::Result<bool> {
        match (&self.filter.id, self.filter.unfinished) {
            (None, false) => self.list(directory, screen, out, err),
            _ => self.details(directory, out, err),
        }
    }

    /// Lists changes.
    fn list(
        &self,
        directory: &Path,
        screen: Screen,
        out: &mut impl Write,
        err: &mut impl Write,
    ) -> anyhow::Result<bool> {
        let filter = Filter { last: self.filter.last.or(Some(LAST)), ..self.filter.clone() };
        let mut rows = Rows::new(&filter, self.looks);
        let all_right = Filter::default().each(directory, err, |record| {
            rows.add(record);
            Ok(())
        })?;
        match rows.table(screen) {
            Some(table) => write!(out, "{table}")?,
            None if self.looks => writeln!(out, "nothing of the kind is on record")?,
            None => {
                writeln!(out, "no such change is on record; --looks lists the calls that changed nothing")?
            }
        }
        Ok(all_right)
    }

    /// Shows everything of one change or one record, or what is known of unfinished changes.
    fn details(&self, directory: &Path, out: &mut impl Write, err: &mut impl Write) -> anyhow::Result<bool> {
        let filter = Filter { id: self.change_of(directory)?, ..self.filter.clone() };
        let unfinished = if filter.unfinished { host_audit::unfinished(directory)? } else { Vec::new() };
        let mut any = false;
        let all_right = filter.each(directory, err, |record| {
            if any && filter.id.is_some() {
                writeln!(out)?;
            }
            any = true;
            match filter.id {
                Some(_) => write!(out, "{}", format::details(record))?,
                None => writeln!(out, "{}", format::row(record))?,
            }
            if filter.unfinished {
                let of = unfinished.iter().find(|change| change.record.seq == record.seq);
                let life = of.map_or(Liveness::Unknown, host_audit::Unfinished::liveness);
                let said = format::life(life, record.change().unwrap_or_default());
                writeln!(out, "{}", wrap(&said, "          ", "          "))?;
            }
            Ok(())
        })?;
        if !any {
            writeln!(err, "nothing of the kind is on record")?;
        }
        // Where an id is named and nothing is found, the exit code says so.
        Ok(all_right && (any || filter.id.is_none()))
    }

    /// The id that is named. The number of a change's beginning, as the list has it, stands for the change.
    fn change_of(&self, directory: &Path) -> anyhow::Result<Option<String>> {
        let Some(id) = &self.filter.id else { return Ok(None) };
        let Ok(seq) = id.parse::<u64>() else { return Ok(Some(id.clone())) };
        for record in Snapshot::open(directory)?.records() {
            if let Ok(record) = record?
                && record.seq == seq
                && record.event == "change-begun"
            {
                return Ok(Some(record.change().unwrap_or(id).to_owned()));
            }
        }
        Ok(Some(id.clone()))
    }
}
