//! `linux-sysadmin audit show`: shows records to a person.

use std::io::Write;
use std::path::Path;

use clap::Args;

use super::filter::Filter;
use super::format;
use crate::cli::text::wrap;
use host_audit::Liveness;

/// The number of records in a list without a filter.
const LAST: u32 = 20;

#[derive(Args)]
pub(super) struct Show {
    #[command(flatten)]
    pub filter: Filter,
}

impl Show {
    pub(super) fn run(
        &self,
        directory: &Path,
        out: &mut impl Write,
        err: &mut impl Write,
    ) -> anyhow::Result<bool> {
        let mut filter = self.filter.clone();
        if filter.id.is_none() && !filter.unfinished {
            filter.last = filter.last.or(Some(LAST));
        }
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
}
