//! The section of a count's page that says who has the most distinct others.

use super::figure::{Block, DataTable};
use super::number::{grouped, percent};
use crate::top::{Question, TopSlice};

/// Widest bar, in characters.
const BAR: usize = 24;

/// A table for each question.
pub(super) fn who(answers: &[(Question, TopSlice)]) -> Vec<Block> {
    let mut blocks = Vec::new();
    for (question, slice) in answers {
        let (keys, others) = (question.keys_plural(), question.others_plural());
        let Some(largest) = slice.keys.first() else {
            blocks.push(Block::Text(format!("None of the {keys} has two distinct {others}.")));
            continue;
        };
        let most = largest.best().max(1.0);
        blocks.push(Block::Text(format!(
            "The {keys} with the most distinct {others}, over everything: about {} pairs.",
            grouped(slice.best().round() as u64)
        )));
        let rows = slice.keys.iter().map(|key| {
            let (lower, upper) =
                key.spread.as_ref().map_or((0, 0), |spread| (spread.lower, spread.upper));
            let bar = (key.best() / most * BAR as f64).round() as usize;
            vec![
                key.key.clone(),
                grouped(key.best().round() as u64),
                format!("{} to {}", grouped(lower), grouped(upper)),
                key.share.map_or_else(String::new, percent),
                "\u{2588}".repeat(bar.min(BAR)),
            ]
        });
        let distinct = format!("distinct {others}");
        let by = question.by_names();
        let columns = [
            (by.as_str(), false),
            (distinct.as_str(), true),
            ("bounds", true),
            ("share of pairs", true),
            ("", false),
        ];
        blocks.push(Block::Table(DataTable::new(&columns, rows)));
    }
    blocks.push(Block::Text(
        "Estimates in bounded memory; flowsieve top ranks the same exactly, by slice, and other keys.".to_owned(),
    ));
    blocks
}
