//! Tables with aligned columns, for people and models alike.

use crate::visible::one_line;

/// The number of characters up to which cells are aligned. A longer cell shifts the rest of its own row, and no other one.
const WIDEST: usize = 32;
/// The blanks between two columns.
const GAP: usize = 2;
/// The text of a cell without a value.
const EMPTY: &str = "-";

/// A table of text: the names of its columns, and rows of cells. A cell without a value is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    names: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Makes a table of these columns, without rows.
    pub fn new<T: Into<String>>(names: impl IntoIterator<Item = T>) -> Self {
        Self { names: names.into_iter().map(|name| one_line(&name.into())).collect(), rows: Vec::new() }
    }

    /// Adds a row. It gets as many cells as there are columns.
    pub fn row<T: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = T>) {
        let mut row: Vec<String> = cells.into_iter().map(|cell| one_line(cell.as_ref())).collect();
        row.resize(self.names.len(), String::new());
        self.rows.push(row);
    }

    /// Takes out each column that says nothing: it has no value in any row, or the same one in all of several rows. Gives
    /// the name and the value of the latter. One column stays in any case.
    pub fn take_constants(&mut self) -> Vec<(String, String)> {
        let mut constants = Vec::new();
        for column in (0..self.names.len()).rev() {
            let Some(value) = self.rows.first().map(|row| row[column].clone()) else { break };
            let is_same = self.rows.iter().all(|row| row[column] == value);
            let says_nothing = is_same && (value.is_empty() || self.rows.len() > 1);
            if !says_nothing || self.names.len() == 1 {
                continue;
            }
            let name = self.names.remove(column);
            for row in &mut self.rows {
                row.remove(column);
            }
            if !value.is_empty() {
                constants.push((name, value));
            }
        }
        constants.reverse();
        constants
    }

    /// Moves the column with the longest cell to the end, where that cell is too long to be aligned.
    pub fn move_longest_last(&mut self) {
        let widest = |column: usize| self.rows.iter().map(|row| width(&row[column])).max().unwrap_or(0);
        let longest = (0..self.names.len()).map(|column| (widest(column), column)).max();
        if let Some((width, column)) = longest
            && width > WIDEST
        {
            for line in std::iter::once(&mut self.names).chain(&mut self.rows) {
                let cell = line.remove(column);
                line.push(cell);
            }
        }
    }

    /// The lines of the table, the names of the columns first.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let widths: Vec<usize> = (0..self.names.len()).map(|column| self.width(column)).collect();
        std::iter::once(&self.names).chain(&self.rows).map(move |cells| aligned(cells, &widths))
    }

    /// The width to which the cells of a column are aligned.
    fn width(&self, column: usize) -> usize {
        let cells = std::iter::once(&self.names).chain(&self.rows).map(|cells| width(&cells[column]));
        cells.filter(|width| *width <= WIDEST).max().unwrap_or(0)
    }
}

fn width(cell: &str) -> usize {
    cell.chars().count()
}

fn aligned(cells: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for (at, (cell, column)) in cells.iter().zip(widths).enumerate() {
        // Behind the last value, nothing has to stand for those that are missing.
        let stands_alone = cell.is_empty() && (at == 0 || at + 1 < cells.len());
        let cell = if stands_alone { EMPTY } else { cell };
        line.push_str(cell);
        line.extend(std::iter::repeat_n(' ', column.saturating_sub(width(cell)) + GAP));
    }
    line.truncate(line.trim_end().len());
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(names: &[&str], rows: &[&[&str]]) -> Table {
        let mut table = Table::new(names.iter().copied());
        rows.iter().for_each(|row| table.row(row.iter()));
        table
    }

    fn text(table: &Table) -> String {
        table.lines().map(|line| line + "\n").collect()
    }

    #[test]
    fn columns_are_aligned_and_no_line_ends_in_blanks() {
        let units = table(
            &["unit", "state", "pid"],
            &[&["nginx.service", "running", "12"], &["ssh", "", "4711"], &["größe", "dead", ""]],
        );
        assert_eq!(
            text(&units),
            "unit           state    pid\n\
             nginx.service  running  12\n\
             ssh            -        4711\n\
             größe          dead\n"
        );
    }

    #[test]
    fn a_cell_that_is_too_long_shifts_its_own_row_only() {
        let long = "x".repeat(WIDEST + 1);
        let files = table(&["path", "size"], &[&["/a", "1"], &[&long, "2"], &["/abc", "3"]]);
        assert_eq!(text(&files), format!("path  size\n/a    1\n{long}  2\n/abc  3\n"));
    }

    #[test]
    fn what_says_nothing_is_taken_out() {
        let mut packages = table(
            &["name", "arch", "version", "held"],
            &[&["acl", "amd64", "2.3", ""], &["bash", "amd64", "5.2", ""]],
        );
        assert_eq!(packages.take_constants(), [("arch".to_owned(), "amd64".to_owned())]);
        assert_eq!(packages, table(&["name", "version"], &[&["acl", "2.3"], &["bash", "5.2"]]));
    }

    #[test]
    fn one_column_stays_and_of_a_single_row_everything_with_a_value() {
        let mut same = table(&["name", "state"], &[&["a", "b"], &["a", "b"]]);
        assert_eq!(same.take_constants(), [("state".to_owned(), "b".to_owned())]);
        assert_eq!(same, table(&["name"], &[&["a"], &["a"]]));
        let mut single = table(&["name", "state", "held"], &[&["a", "b", ""]]);
        assert!(single.take_constants().is_empty());
        assert_eq!(single, table(&["name", "state"], &[&["a", "b"]]));
        let mut empty = table(&["name"], &[]);
        assert!(empty.take_constants().is_empty());
        assert_eq!(text(&empty), "name\n");
    }

    #[test]
    fn the_longest_column_goes_to_the_end_where_it_could_not_be_aligned() {
        let long = "y".repeat(WIDEST + 1);
        let mut lines = table(&["message", "count"], &[&[&long, "1"], &["short", "2"]]);
        lines.move_longest_last();
        assert_eq!(text(&lines), format!("count  message\n1      {long}\n2      short\n"));
        let mut units = table(&["unit", "state"], &[&["nginx.service", "dead"]]);
        let before = units.clone();
        units.move_longest_last();
        assert_eq!(units, before);
    }

    #[test]
    fn cells_and_names_stay_in_their_line_and_a_row_has_as_many_cells_as_columns() {
        let odd = table(&["a", "b"], &[&["one\ntwo\t\u{1b}[2J"], &["x", "y", "z"]]);
        assert_eq!(text(&odd), "a                    b\none\\ntwo\\t\\u{1b}[2J\nx                    y\n");
        let named = table(&["one\ntry: two"], &[&["x"], &["y"]]);
        assert_eq!(text(&named), "one\\ntry: two\nx\ny\n");
    }
}
