//! The section of a count's page about the keys with the most distinct others.

use super::document::{Block, TableView, TextColumns};
use super::heading::Heading;
use super::number::{counted, grouped, percent, rounded};
use crate::top::{Question, TopKey, TopSlice};

/// A table for each question.
pub(super) fn who(answers: &[(Question, TopSlice)]) -> Vec<Block> {
    let mut blocks = Vec::new();
    for (question, slice) in answers {
        let (keys, others) = (question.keys_plural(), question.others_plural());
        let Some(largest) = slice.keys.first() else {
            let text = format!("none of the {keys} has two distinct {others}");
            blocks.push(Block::Sentence(text));
            continue;
        };
        let most = largest.best().max(1.0);
        let pairs = counted(slice.best().round() as u64, "pair", "pairs");
        blocks.push(Block::Sentence(format!(
            "the {keys} with the most distinct {others}, over everything: about {pairs}"
        )));
        let mut columns = TextColumns::<TopKey>::default();
        columns.push(Heading::text(question.by_names()), |key| key.key.clone());
        columns.push(Heading::number(format!("distinct {others}")), |key| rounded(key.best()));
        columns.push(Heading::number("bounds"), |key| {
            let bounds = key.spread.as_ref().map_or([0, 0], |spread| [spread.lower, spread.upper]);
            bounds.map(grouped).join(" to ")
        });
        columns.push(Heading::number("share of pairs"), |key| {
            key.share.map_or_else(String::new, percent)
        });
        let bars = slice.keys.iter().map(|key| key.best() / most).collect();
        blocks.push(Block::Table(TableView { bars, ..columns.table(&slice.keys) }));
    }
    blocks.push(Block::Sentence(
        "estimates in bounded memory; flowsieve top ranks the same exactly, by slice, and other keys"
            .to_owned(),
    ));
    blocks
}
