//! The traffic on a page: who talks to whom, which keys have the most distinct others, and packets
//! without an element.

use super::document::{Block, TableView, TextColumns};
use super::figure::{Axis, Drawing, Figure, Scale};
use super::heading::Heading;
use super::number::{counted, grouped, percent, rounded, some};
use crate::decode::Skip;
use crate::pipeline::{Traffic, TrafficPair, prefix_name};
use crate::top::{Question, TopKey, TopSlice};
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

/// Number of origins and of destinations in a heat map, without "other".
const TOP: usize = 24;

const OTHER: &str = "other";

/// Who talks to whom.
pub(super) fn who_talks(traffic: &Traffic) -> Vec<Block> {
    let figure = heat_map(traffic).map(Block::Figure);
    let none = || Block::Sentence("no packet had addresses that can be read".to_owned());
    let mut blocks = vec![figure.unwrap_or_else(none)];
    let [one, many] = ["packet of the later ones is", "packets of the later ones are"];
    blocks.extend(some(traffic.beyond(), one, many).map(|packets| {
        Block::Sentence(format!("there were more pairs than the table holds: {packets} counted as other; a shorter prefix (--od) makes fewer"))
    }));
    blocks
}

/// Packets without an element or a key, by reason, the most frequent first.
pub(super) fn skipped(name: &str, lacking: &str, skipped: &BTreeMap<Skip, u64>) -> Figure {
    let mut reasons: Vec<_> = skipped.iter().collect();
    reasons.sort_unstable_by_key(|(skip, count)| (u64::MAX - **count, skip.name()));
    let reasons = reasons.into_iter();
    let (categories, counts) =
        reasons.map(|(skip, &count)| (skip.words().into_owned(), Some(count as f64))).unzip();
    let drawing = Drawing::counts("packets", categories, counts);
    Figure::new(name, format!("Packets without {lacking}, by reason"), "", drawing)
}

/// The origins and destinations with most packets, and the rest together.
fn heat_map(traffic: &Traffic) -> Option<Figure> {
    let pairs = traffic.pairs();
    if pairs.is_empty() {
        return None;
    }
    let (mut from, mut to): (HashMap<IpAddr, u64>, HashMap<IpAddr, u64>) = Default::default();
    let ends = |pair: &TrafficPair| Some((pair.addresses?.ends(), pair.packets));
    for ((origin, destination), packets) in pairs.iter().filter_map(ends) {
        *from.entry(origin).or_default() += packets;
        *to.entry(destination).or_default() += packets;
    }
    let (four, six) = traffic.bits();
    let top = |packets: &HashMap<IpAddr, u64>| {
        let mut ends: Vec<(IpAddr, u64)> = packets.iter().map(|(&end, &n)| (end, n)).collect();
        ends.sort_unstable_by_key(|&(end, packets)| (u64::MAX - packets, end));
        let shown = ends.iter().take(TOP);
        let mut names: Vec<String> = shown.map(|end| prefix_name(end.0, four)).collect();
        if ends.len() > TOP || traffic.beyond() > 0 {
            names.push(OTHER.to_owned());
        }
        let numbers: HashMap<IpAddr, usize> =
            ends.iter().take(TOP).enumerate().map(|(i, end)| (end.0, i)).collect();
        (names, numbers)
    };
    let ((rows, row_of), (columns, column_of)) = (top(&from), top(&to));
    let mut packets = vec![vec![0_u64; columns.len()]; rows.len()];
    for ((origin, destination), of_pair) in pairs.iter().filter_map(ends) {
        let row = row_of.get(&origin).copied().unwrap_or(rows.len() - 1);
        let column = column_of.get(&destination).copied().unwrap_or(columns.len() - 1);
        packets[row][column] += of_pair;
    }
    packets[rows.len() - 1][columns.len() - 1] += traffic.beyond();
    let value = |n: u64| (n > 0).then_some(n as f64);
    let caption = format!(
        "The {TOP} prefixes with most packets on each side (/{four} for IPv4, /{six} for IPv6), of {}. All packets with readable addresses count, whatever the elements are.",
        counted(pairs.iter().filter_map(ends).count() as u64, "pair", "pairs")
    );
    let drawing = Drawing::HeatMap {
        values: packets.into_iter().map(|row| row.into_iter().map(value).collect()).collect(),
        rows,
        columns,
        letters: Vec::new(),
        shade: Axis::new("packets", Scale::Log),
    };
    let title = "Packets from origin (row) to destination (column)";
    Some(Figure::new("origin-destination", title, caption, drawing))
}

/// The keys with the most distinct others: a table for each question.
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
