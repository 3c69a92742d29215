//! `linux-sysadmin audit show`: records for a person.

use std::io::Write;
use std::path::Path;

use clap::Args;

use super::filter::Filter;
use super::words;
use crate::cli::modules::wrapped;
use host_audit::Life;

/// Most records of a list where nothing says otherwise.
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
                Some(_) => write!(out, "{}", words::details(record))?,
                None => writeln!(out, "{}", words::row(record))?,
            }
            if filter.unfinished {
                let of = unfinished.iter().find(|change| change.record.seq == record.seq);
                let life = of.map_or(Life::Unknown, host_audit::Unfinished::life);
                let said = words::life(life, record.change().unwrap_or_default());
                writeln!(out, "{}", wrapped(&said, "          ", "          "))?;
            }
            Ok(())
        })?;
        if !any {
            writeln!(err, "nothing of the kind is on record")?;
        }
        // Whoever names one thing and gets nothing should notice.
        Ok(all_right && (any || filter.id.is_none()))
    }
}
