//! A document: what people read of a result. The same blocks are printed on a terminal, drawn on a
//! page and written as Markdown.

use super::figure::Figure;
use super::heading::Heading;
use super::number::capitalised;
use crate::zone::Zone;
use std::iter::once;

/// Where a block is shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Medium {
    /// Everywhere.
    Both,
    /// On terminals, and in text files.
    Terminal,
    /// On pages, in HTML and in Markdown.
    Page,
}

/// A part of a document.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// Begins a section, which has this heading.
    Section(String),
    /// An answer in words; a page begins with all of them.
    Answer(String),
    /// A limit of the answers; a page lists all warnings below the answers.
    Warning(String),
    /// A paragraph. Leading spaces indent it on a terminal.
    Sentence(String),
    /// A command line, word by word.
    Command(Vec<String>),
    /// An empty line on a terminal.
    Gap,
    /// A table.
    Table(TableView),
    /// A chart, with its values as a table.
    Figure(Figure),
}

/// A table for people: written cells below headings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableView {
    /// Headings; if all are empty, the table has no line of headings.
    pub headings: Vec<Heading>,
    /// The cells of each row.
    pub rows: Vec<Vec<String>>,
    /// Rows in bold face.
    pub bold: Vec<usize>,
    /// Lengths of bars behind the rows, from 0 to 1; empty for a table without bars.
    pub bars: Vec<f64>,
}

/// The text of a row in a column.
type Text<'a, R> = Box<dyn Fn(&R) -> String + 'a>;

/// The columns of a table, each with its heading and the text of a row.
pub(super) struct TextColumns<'a, R> {
    headings: Vec<Heading>,
    texts: Vec<Text<'a, R>>,
}

impl<R> Default for TextColumns<'_, R> {
    fn default() -> Self {
        Self { headings: Vec::new(), texts: Vec::new() }
    }
}

impl<'a, R> TextColumns<'a, R> {
    pub(super) fn push(&mut self, heading: Heading, text: impl Fn(&R) -> String + 'a) {
        self.headings.push(heading);
        self.texts.push(Box::new(text));
    }

    /// The table of these rows.
    pub(super) fn table(self, rows: &[R]) -> TableView {
        let rows = rows.iter().map(|row| self.texts.iter().map(|text| text(row)).collect());
        TableView { rows: rows.collect(), headings: self.headings, ..TableView::default() }
    }
}

/// How sentences are wrapped on terminals and in text files.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wrapping {
    /// Longest line; `usize::MAX` for lines of any length in files.
    pub width: usize,
    /// Spaces before further lines of a sentence.
    pub hanging: usize,
}

impl Default for Wrapping {
    fn default() -> Self {
        Self { width: usize::MAX, hanging: 0 }
    }
}

/// A result for people.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// Heading of a page.
    pub title: String,
    /// Label of pages and figures: the analysis with its structures and their memory.
    pub label: String,
    /// The command line that made it.
    pub command: Option<String>,
    /// Time zone of the times in it.
    pub zone: Zone,
    /// How sentences are wrapped.
    pub wrapping: Wrapping,
    /// The content, in order.
    pub blocks: Vec<(Medium, Block)>,
}

impl TableView {
    /// A table of these rows.
    pub(super) fn new(
        headings: impl IntoIterator<Item = Heading>,
        rows: impl IntoIterator<Item = Vec<String>>,
    ) -> Self {
        let (headings, rows) = (headings.into_iter().collect(), rows.into_iter().collect());
        Self { headings, rows, ..Self::default() }
    }

    /// A table whose rows begin with a name.
    pub(super) fn named(
        first: Heading,
        others: impl Iterator<Item = Heading>,
        rows: impl IntoIterator<Item = (String, Vec<String>)>,
    ) -> Self {
        let rows = rows.into_iter().map(|(name, cells)| [vec![name], cells].concat());
        Self::new(once(first).chain(others), rows)
    }

    /// A table of names and texts without headings; texts are wrapped.
    pub(super) fn facts(
        name_width: usize,
        facts: impl IntoIterator<Item = (impl Into<String>, String)>,
    ) -> Self {
        let headings = [Heading::left(0, name_width, ""), Heading::text("").wrapped(24)];
        Self::new(headings, facts.into_iter().map(|(name, text)| vec![name.into(), text]))
    }

    /// Whether it has a line of headings.
    pub(super) fn has_head(&self) -> bool {
        self.headings.iter().any(|heading| !heading.text.is_empty())
    }
}

impl Document {
    /// Appends blocks for pages.
    pub(super) fn page(&mut self, blocks: impl IntoIterator<Item = Block>) {
        self.blocks.extend(blocks.into_iter().map(|block| (Medium::Page, block)));
    }

    /// Appends a section for pages.
    pub(super) fn section(
        &mut self,
        title: impl Into<String>,
        blocks: impl IntoIterator<Item = Block>,
    ) {
        self.page([Block::Section(title.into())]);
        self.page(blocks);
    }

    /// Appends blocks for terminals.
    pub(super) fn terminal(&mut self, blocks: impl IntoIterator<Item = Block>) {
        self.blocks.extend(blocks.into_iter().map(|block| (Medium::Terminal, block)));
    }

    /// Appends blocks for terminals and pages.
    pub(super) fn both(&mut self, blocks: impl IntoIterator<Item = Block>) {
        self.blocks.extend(blocks.into_iter().map(|block| (Medium::Both, block)));
    }

    /// The blocks that are shown on a medium.
    pub(super) fn shown_on(&self, medium: Medium) -> impl Iterator<Item = &Block> {
        let blocks = self.blocks.iter();
        let shown = move |on: Medium| on == Medium::Both || on == medium;
        blocks.filter(move |(on, _)| shown(*on)).map(|(_, block)| block)
    }

    /// The answers in words, in order.
    pub fn answers(&self) -> impl Iterator<Item = &str> {
        self.shown_on(Medium::Page).filter_map(|block| match block {
            Block::Answer(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// The warnings, in order.
    pub fn warnings(&self) -> impl Iterator<Item = &str> {
        self.shown_on(Medium::Page).filter_map(|block| match block {
            Block::Warning(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// All figures, in order.
    pub fn figures(&self) -> impl Iterator<Item = &Figure> {
        self.blocks.iter().filter_map(|(_, block)| match block {
            Block::Figure(figure) => Some(figure),
            _ => None,
        })
    }

    /// The lines that say where the document comes from: its label, its command line, the version.
    pub fn provenance(&self) -> Vec<String> {
        const VERSION: &str = env!("CARGO_PKG_VERSION");
        let made = match &self.command {
            Some(command) => format!("{command} (flowsieve {VERSION})"),
            None => format!("flowsieve {VERSION}"),
        };
        let lines = [self.label.clone(), made].into_iter();
        lines.filter(|line| !line.is_empty()).collect()
    }
}

/// Ends a phrase as a sentence of a page: with a capital and a full stop.
pub(super) fn as_sentence(text: &str) -> String {
    let text = text.trim();
    if text.ends_with(['.', ':', '?']) {
        return text.to_owned();
    }
    capitalised(text) + "."
}
