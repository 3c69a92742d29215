//! A table of one line for each row. Where it is wider than the screen, its widest columns are cut.

use anstyle::Style;
use textwrap::core::display_width;

use super::screen::{HEADING, Screen, cut};

/// The number of blanks between two cells.
const GAP: usize = 2;

/// A column of a table.
pub(super) struct Column {
    head: String,
    /// The width below which the column is never cut.
    least: usize,
}

impl Column {
    /// A column that is never cut.
    pub(super) fn whole(head: impl Into<String>) -> Self {
        Self::cut(head, usize::MAX)
    }

    /// A column that may be cut to this width.
    pub(super) fn cut(head: impl Into<String>, least: usize) -> Self {
        Self { head: head.into(), least }
    }
}

/// A cell of a table. Its text is on one line, without hidden characters.
pub(super) struct Cell {
    pub text: String,
    pub style: Style,
    /// True for a number, which stands at the right of its column.
    pub is_number: bool,
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text, style: Style::new(), is_number: false }
    }
}

impl Cell {
    /// A cell in this style.
    pub(super) fn styled(text: impl Into<String>, style: Style) -> Self {
        Self { style, ..Self::from(text.into()) }
    }
}

/// Columns, and rows with a cell for each of them.
pub(super) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table without rows.
    pub(super) fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        Self { columns: columns.into_iter().collect(), rows: Vec::new() }
    }

    /// Adds a row.
    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Whether the table fits this width, with columns cut where they may be.
    pub(super) fn fits(&self, room: usize) -> bool {
        let least = self.natural().zip(&self.columns).map(|(width, column)| width.min(column.least));
        least.fold(self.gaps(), usize::saturating_add) <= room
    }

    /// The table as text, `indent` columns from the left. Where even the least widths don't fit, its lines are longer than
    /// the screen.
    pub(super) fn text(&self, screen: Screen, indent: usize) -> String {
        let widths = self.widths(screen.room().saturating_sub(indent));
        let is_number = |number: usize| self.rows.iter().all(|row| row[number].is_number);
        let numbers: Vec<bool> =
            (0..self.columns.len()).map(|number| !self.rows.is_empty() && is_number(number)).collect();
        let mut text = String::new();
        let mut line = |cells: &mut dyn Iterator<Item = (&str, Style)>| {
            let (mut line, mut blanks) = (String::new(), indent);
            for (number, (cell, style)) in cells.enumerate() {
                let shown = cut(cell, widths[number]);
                let free = widths[number].saturating_sub(display_width(&shown));
                let (before, after) = if numbers[number] { (free, 0) } else { (0, free) };
                if !shown.is_empty() {
                    line.push_str(&" ".repeat(blanks + before));
                    line.push_str(&screen.paint(style, &shown));
                    blanks = 0;
                } else {
                    blanks += before;
                }
                blanks += after + GAP;
            }
            text.push_str(&line);
            text.push('\n');
        };
        line(&mut self.columns.iter().map(|column| (column.head.as_str(), HEADING)));
        for row in &self.rows {
            line(&mut row.iter().map(|cell| (cell.text.as_str(), cell.style)));
        }
        text
    }

    fn gaps(&self) -> usize {
        self.columns.len().saturating_sub(1) * GAP
    }

    /// The widths that the columns would have on a screen without an end.
    fn natural(&self) -> impl Iterator<Item = usize> {
        self.columns.iter().enumerate().map(|(number, column)| {
            let cells = self.rows.iter().map(|row| display_width(&row[number].text));
            cells.chain([display_width(&column.head)]).max().unwrap_or_default()
        })
    }

    /// The widths of the columns in this room. The widest column is cut first.
    fn widths(&self, room: usize) -> Vec<usize> {
        let mut widths: Vec<usize> = self.natural().map(|width| width.min(room)).collect();
        let is_wider = |number: usize, width: usize| width > self.columns[number].least;
        let mut excess = (widths.iter().sum::<usize>() + self.gaps()).saturating_sub(room);
        while excess > 0 {
            let wider = widths.iter_mut().enumerate().filter(|(number, width)| is_wider(*number, **width));
            let Some((_, widest)) = wider.max_by_key(|(_, width)| **width) else { break };
            *widest -= 1;
            excess -= 1;
        }
        widths
    }
}

#[cfg(test)]
mod tests {
    use super::super::screen::BAD;
    use super::*;

    fn table() -> Table {
        let mut table = Table::new([Column::whole("ID"), Column::cut("NAME", 6), Column::cut("COUNT", 5)]);
        for (id, name, count) in [("a1", "a rather long name", "7"), ("b2", "日本語", "120")] {
            let count = Cell { is_number: true, ..Cell::from(count.to_owned()) };
            table.row([Cell::from(id.to_owned()), Cell::styled(name, BAD), count]);
        }
        table
    }

    #[test]
    fn cells_stand_below_each_other_and_numbers_at_the_right() {
        assert_eq!(
            table().text(Screen::plain(80), 2),
            "  ID  NAME                COUNT\n  a1  a rather long name      7\n  b2  日本語                120\n"
        );
    }

    #[test]
    fn the_widest_column_is_cut_first_and_no_further_than_it_may_be() {
        assert_eq!(
            table().text(Screen::plain(20), 0),
            "ID  NAME       COUNT\na1  a rather…      7\nb2  日本語       120\n"
        );
        assert!(table().fits(17) && !table().fits(16));
        assert_eq!(table().text(Screen::plain(10), 0).lines().next(), Some("ID  NAME    COUNT"));
    }

    #[test]
    fn colours_change_no_column_and_an_empty_cell_leaves_no_blanks_behind() {
        let colored = table().text(Screen::colored(80), 0);
        assert!(colored.contains("\u{1b}[31m日本語\u{1b}[0m                120\n"), "{colored:?}");
        let mut table = Table::new([Column::whole("A"), Column::whole("B")]);
        table.row([Cell::from("x".to_owned()), Cell::from(String::new())]);
        assert_eq!(table.text(Screen::plain(80), 0), "A  B\nx\n");
    }
}
