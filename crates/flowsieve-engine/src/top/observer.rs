//! Rankings that observe a count: the keys with the most distinct others over everything, from the
//! packets that the count reads anyway.

use super::extract::TopExtractor;
use super::plan::{Question, RankBy, TopPlan};
use super::results::TopSlice;
use super::workers::Ranker;
use crate::decode::Addresses;
use crate::elements::{
    Attribute, ElementBatch, ElementColumns, ElementKind, ElementRule, Field, HeaderFields,
};
use crate::pipeline::{Align, ClosedSlice, Observer, Slicing};
use crate::plan::TracePlan;
use std::ops::Range;

/// Elements that are ranked at a time.
const BATCH: usize = 1024;

/// Sources by distinct destinations and destinations by distinct sources, or sources by distinct
/// names. In bounded memory, and without an exact count.
#[derive(Debug)]
pub struct TopObserver {
    rankings: Vec<Ranking>,
    /// Names are asked for, and stand in the elements.
    of_names: bool,
    packets: u64,
    times_ns: Option<(i64, i64)>,
}

#[derive(Debug)]
struct Ranking {
    question: Question,
    extractor: TopExtractor,
    ranker: Ranker,
    waiting: ElementColumns,
    elements: u64,
}

impl TopObserver {
    /// Ranks at most `most` keys for each question, for elements of this rule; `None` if these do
    /// not have two ends, or do not tell them apart.
    pub fn new(rule: &ElementRule, most: usize, seed: u64) -> Option<Self> {
        use Attribute::{Destination, Domain, Source};
        let kind = rule.kind;
        let has = |end| kind.field(end) == Some(Field::whole(end));
        let questions: &[(Attribute, Attribute)] = match kind {
            _ if rule.undirected => return None,
            ElementKind::DNS => &[(Source, Domain)],
            _ if has(Source) && has(Destination) && !kind.has_name() => {
                &[(Source, Destination), (Destination, Source)]
            }
            _ => return None,
        };
        let rankings = questions.iter().filter_map(|&(by, distinct)| {
            let fields = [by, distinct].map(|attribute| vec![Field::whole(attribute)]);
            let [by, distinct] = fields;
            let question = Question::new(by, distinct).ok()?;
            let plan = TopPlan {
                trace: TracePlan::default().with_threads(1),
                question: question.clone(),
                queries_only: false,
                slicing: Slicing { width_ns: None, align: Align::Epoch },
                most: Some(most.max(1)),
                least: 2,
                rank_by: RankBy::Distinct,
                memory_bytes: TopPlan::USUAL_BYTES,
                exact_limit_bytes: None,
                seed,
            };
            Some(Ranking {
                question,
                extractor: TopExtractor::new(&plan),
                ranker: Ranker::new(&plan),
                waiting: ElementColumns::default(),
                elements: 0,
            })
        });
        Some(Self {
            rankings: rankings.collect(),
            of_names: kind == ElementKind::DNS,
            packets: 0,
            times_ns: None,
        })
    }

    /// The largest keys of each question.
    pub fn finish(self) -> Vec<(Question, TopSlice)> {
        let (start_ns, end_ns) = self.times_ns.unwrap_or_default();
        let packets = self.packets;
        let answers = self.rankings.into_iter().map(|mut ranking| {
            ranking.hand_over();
            let closed =
                ClosedSlice { index: 0, start_ns, end_ns, packets, elements: ranking.elements };
            (ranking.question, ranking.ranker.close(0, closed))
        });
        answers.collect()
    }
}

impl Ranking {
    fn push(&mut self, addresses: Addresses, name: &[u8]) {
        let headers = HeaderFields { name, ..HeaderFields::between(addresses) };
        self.extractor.push(&headers, &mut self.waiting);
        if self.waiting.len() == BATCH {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        if !self.waiting.is_empty() {
            self.elements += self.waiting.len() as u64;
            self.ranker.add(0, &self.waiting);
            self.waiting.clear();
        }
    }
}

impl Observer for TopObserver {
    fn needs_keys(&self) -> bool {
        self.of_names
    }

    fn observe(&mut self, batch: &ElementBatch, packets: Range<usize>, elements: Range<usize>) {
        self.packets += packets.len() as u64;
        for &time_ns in &batch.times_ns[packets.clone()] {
            let (first, last) = self.times_ns.unwrap_or((time_ns, time_ns));
            self.times_ns = Some((first.min(time_ns), last.max(time_ns)));
        }
        for ranking in &mut self.rankings {
            if self.of_names {
                let keys = elements.clone().map(|element| batch.elements.keys.get(element));
                for (addresses, name) in keys.filter_map(ends_and_name) {
                    ranking.push(addresses, name);
                }
            } else {
                for &addresses in batch.addresses[packets.clone()].iter().flatten() {
                    ranking.push(addresses, &[]);
                }
            }
        }
    }
}

/// The parts of a DNS triple's bytes.
fn ends_and_name(key: &[u8]) -> Option<(Addresses, &[u8])> {
    match key.split_first()? {
        (4, rest) => {
            let (&source, rest) = rest.split_first_chunk()?;
            let (&destination, name) = rest.split_first_chunk()?;
            let ends = Addresses::V4 { source, destination };
            Some((ends, name))
        }
        (_, rest) => {
            let (&source, rest) = rest.split_first_chunk()?;
            let (&destination, name) = rest.split_first_chunk()?;
            let ends = Addresses::V6 { source, destination };
            Some((ends, name))
        }
    }
}
