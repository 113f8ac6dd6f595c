//! Tables and figures of the papers that the filters come from, recomputed.
//!
//! Each is a function from [`Settings`] to an [`Experiment`]: the printed figure, the formula and
//! the measurement on the filters of this library, cell by cell. Everything but times follows from
//! the seed, for any number of threads.

#![allow(
    clippy::unnecessary_wraps,
    reason = "experiments have one signature, and some of them cannot fail"
)]

mod captures;
mod cbfm_dns;
mod cbfm_memory;
mod cbfm_rates;
mod cbfm_times;
mod cmdbf;
mod course;
mod dictionary;
mod dleft;
mod ratios;
mod result;
mod runs;
mod scbf;
mod statistics;
mod uniform;

pub use result::{
    Agreement, Cell, Chart, ChartAxis, ChartScale, Curve, CurveKind, Experiment, ExperimentError,
    Measured, Printed, TOLERANCE,
};

use flowsieve_engine::named_enum;
use statistics::rate_of;
use std::path::PathBuf;

named_enum! {
    /// The size of experiments.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub enum Scale {
        /// A fraction of a second each: shows that they run.
        Small = "small",
        /// As published where that takes seconds; arrays and sets of Fig. 7 of the CBFM paper at
        /// 1/64.
        Default = "default",
        /// As published everywhere.
        Full = "full",
    }
}

impl Scale {
    /// Returns one of three numbers.
    const fn pick(self, small: u64, default: u64, full: u64) -> u64 {
        match self {
            Self::Small => small,
            Self::Default => default,
            Self::Full => full,
        }
    }
}

/// Everything that an experiment depends on, and the threads.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The size.
    pub scale: Scale,
    /// Start of the random numbers.
    pub seed: u64,
    /// Threads; only speed depends on them.
    pub threads: usize,
    /// Captures for the experiments on traffic; without any, traffic is generated.
    pub captures: Vec<PathBuf>,
    /// A list of words, one per line; without it, words are generated.
    pub words: Option<PathBuf>,
}

/// First stream of random numbers for the seeds of runs, above those that experiments use by
/// number.
const RUN_STREAM: u64 = 1 << 32;

impl Settings {
    /// Returns the seed of a repetition. Neighbouring seeds have no repetition in common.
    fn run_seed(&self, run: usize) -> u64 {
        runs::Random::new(self.seed, RUN_STREAM + run as u64).next()
    }
}

/// An experiment that can be run.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// The table or figure that it recomputes.
    pub title: &'static str,
    /// The publication.
    pub source: &'static str,
    run: Run,
}

/// Building an experiment; [`Entry::run`] adds its name.
impl Experiment {
    fn new<const REMARKS: usize>(remarks: [String; REMARKS]) -> Self {
        Self { remarks: remarks.into(), ..Self::default() }
    }

    /// Adds a cell, and returns it to be filled.
    fn cell(&mut self, label: impl Into<String>) -> &mut Cell {
        self.cells.push(Cell::new(label));
        self.cells.last_mut().expect("it was put there")
    }

    /// Adds the cell of a rate, measured in independent runs with this many `hits` in `trials`.
    fn rate(
        &mut self,
        label: impl Into<String>,
        formula: f64,
        hits: impl IntoIterator<Item = u64>,
        trials: u64,
    ) -> &mut Cell {
        self.cell(label).formula(formula).measured(rate_of(hits, trials, Some(formula)))
    }

    /// Adds a chart with a horizontal and a vertical axis.
    fn chart(
        &mut self,
        name: impl Into<String>,
        title: impl Into<String>,
        caption: impl Into<String>,
        axes: [(&str, ChartScale); 2],
        curves: impl Into<Vec<Curve>>,
    ) {
        let [x, y] = axes.map(|(label, scale)| ChartAxis { label: label.to_owned(), scale });
        let (name, title, caption) = (name.into(), title.into(), caption.into());
        self.charts.push(Chart { name, title, caption, x, y, curves: curves.into() });
    }
}

type Found = Result<Experiment, ExperimentError>;

type Run = fn(&Settings) -> Found;

/// Makes an experiment of the list, without a title.
const fn entry(name: &'static str, source: &'static str, run: Run) -> Entry {
    let title = "";
    Entry { name, title, source, run }
}

impl Entry {
    const fn titled(mut self, title: &'static str) -> Self {
        self.title = title;
        self
    }

    /// Runs it.
    ///
    /// # Errors
    ///
    /// A capture or the list of words cannot be read.
    pub fn run(&self, settings: &Settings) -> Result<Experiment, ExperimentError> {
        let Self { name, title, source, run } = *self;
        Ok(Experiment { name, title, source, ..run(settings)? })
    }
}

const CMDBF: &str = "Xie, Qin, Wen, Zhang, Xie, \"Combine multi-dimension Bloom filter for membership queries\", Journal on Communications 29(1), 2008, 56-64";
const CBFM: &str = "Wang, Yun, Wang, Wang, \"CBFM: cutted Bloom filter matrix for multi-dimensional membership query\", Journal on Communications 37(3), 2016, 139-147";
const SCBF: &str = "Huang, Fang, Zhang, \"Split counting Bloom filter and its application in HBase secondary index\", 2015";
const DLEFT: &str = "Bonomi, Mitzenmacher, Panigrahy, Singh, Varghese, \"An improved construction for counting Bloom filters\", ESA 2006, and a Java implementer's report on it";
const COURSE: &str =
    "Ma, \"Representation and retrieval of multi-dimensional data with Bloom filters\", 2022";

/// All experiments, in the order of the papers.
pub const ALL: &[Entry] = &[
    entry("cmdbf-table-1", CMDBF, cmdbf::table_1)
        .titled("Table 1: false-positive rates of MDBF and CMDBF"),
    entry("cmdbf-space", CMDBF, cmdbf::space).titled("Table 1: space, and what it saves"),
    entry("cmdbf-negatives", CMDBF, cmdbf::negatives)
        .titled("Table 1 with other negatives: values that occur"),
    entry("cmdbf-combinations", CMDBF, cmdbf::combinations)
        .titled("Text: what the combined filter stands on"),
    entry("cmdbf-examples", CMDBF, cmdbf::examples).titled("The worked examples"),
    entry("cmdbf-fig-9", CMDBF, cmdbf::fig_9)
        .titled("Fig. 9: host pairs a second, exact and by MDBF and CMDBF"),
    entry("cbfm-table-2", CBFM, cbfm_memory::table_2)
        .titled("Table 2: elements that fit into 1 MB"),
    entry("cbfm-table-3", CBFM, cbfm_memory::table_3).titled("Table 3: memory for 1000 elements"),
    entry("cbfm-fig-7", CBFM, cbfm_rates::fig_7)
        .titled("Fig. 7: false-positive rates by the share of known values"),
    entry("cbfm-fig-8", CBFM, cbfm_dns::fig_8)
        .titled("Fig. 8: false-positive rates on DNS traffic by memory"),
    entry("cbfm-fig-9", CBFM, cbfm_rates::fig_9).titled("Fig. 9: weights (WCBFM)"),
    entry("cbfm-fig-10", CBFM, cbfm_times::fig_10).titled("Fig. 10: query times"),
    entry("cbfm-fig-11", CBFM, cbfm_memory::fig_11)
        .titled("Fig. 11: memory of BFM and CBFM by the number of attributes"),
    entry("cbfm-fig-12", CBFM, cbfm_times::fig_12)
        .titled("Fig. 12: query times by the number of attributes"),
    entry("cbfm-sub-queries", CBFM, cbfm_times::sub_queries)
        .titled("Text: at most d sub-queries of a query"),
    entry("cbfm-query-n", CBFM, cbfm_times::query_n)
        .titled("Text: query times by the number of elements"),
    entry("cbfm-memory", CBFM, cbfm_memory::sixteen_positions)
        .titled("Memory with 16 bits an attribute"),
    entry("scbf-table-1", SCBF, scbf::table_1)
        .titled("Table 1: parameters for 45 K counters, and the rates they give"),
    entry("scbf-tables-2-3", SCBF, scbf::tables_2_3)
        .titled("Tables 2 and 3: overflow of the split filter's counters"),
    entry("scbf-table-4", SCBF, scbf::table_4)
        .titled("Table 4: overflow beside the counting Bloom filter"),
    entry("scbf-deletion", SCBF, scbf::deletion)
        .titled("Deletion error of a scalable split filter"),
    entry("dleft-loads", DLEFT, dleft::loads).titled("Loads of the four subtables"),
    entry("dleft-rate", DLEFT, dleft::rate).titled("Error rate, and memory against other filters"),
    entry("dleft-times", DLEFT, dleft::times)
        .titled("Times of the operations, against other filters"),
    entry("course-table-1", COURSE, course::table_1)
        .titled("Table 1: error rate and memory of a dictionary"),
    entry("course-fig-2", COURSE, course::fig_2)
        .titled("Fig. 2: rate by p, by the number of functions, and 0.6185^(m/n)"),
    entry("course-fig-3", COURSE, course::fig_3)
        .titled("Fig. 3: query by add time, peak by mean memory, of filter and set"),
    entry("course-by-words", COURSE, course::by_words)
        .titled("Table 1's quantities by the number of words"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_seeds_share_a_run() {
        let seeds = (0..20_u64).chain([u64::MAX - 1, u64::MAX]);
        let runs: Vec<u64> = seeds
            .flat_map(|seed| {
                let settings = Settings {
                    scale: Scale::Small,
                    seed,
                    threads: 1,
                    captures: Vec::new(),
                    words: None,
                };
                (0..1_000).map(move |run| settings.run_seed(run))
            })
            .collect();
        assert_eq!(runs.iter().collect::<HashSet<_>>().len(), runs.len());
    }
}
