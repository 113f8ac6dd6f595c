//! Cartesian join, BFM, CBFM and WCBFM: sizes, k, cuts and weights.

use super::cuts::{Stored, families};
use super::row::weighted;
use super::search::{last, least};
use super::{Design, Goal, PlanRequest, PlanRow, Structure};
use crate::filters::FilterKind;
use crate::filters::matrix_sizing::{attribute_size, rate_in_rows, table_probes};
use crate::filters::sizing::{MAX_PROBES, bloom_fpr};

/// Largest size of an attribute that is considered.
const MOST_SIZE: u64 = 1 << 48;

/// Most attributes whose weights are searched for; with more of them they are equal.
const MOST_WEIGHED: usize = 6;

/// Families of cuts whose weights are optimised: the best with equal weights.
const REFINED: usize = 8;

/// A matrix with given cuts, and what it is asked.
struct Matrix<'a> {
    request: &'a PlanRequest,
    kind: FilterKind,
    cuts: Vec<u32>,
    stored: Stored,
    /// For each wanted combination the stored ones that answer it.
    asked: Vec<Vec<u32>>,
}

/// Sizes of the attributes and k, with what they give.
#[derive(Clone, Debug)]
struct Candidate {
    sizes: Vec<f64>,
    probes: u32,
    /// Weighted rate.
    fpr: f64,
    cells: f64,
}

impl<'a> Matrix<'a> {
    fn new(request: &'a PlanRequest, kind: FilterKind, cuts: Vec<u32>) -> Self {
        let stored = Stored::new(request.attributes.len(), &cuts);
        let asked = request.wanted.iter();
        // Every projection of a Cartesian join answers for itself, as in a matrix without cuts.
        let asked = asked.map(|w| stored.maximal_subsets(w.mask)).collect();
        Self {
            request,
            kind,
            cuts,
            stored,
            asked,
        }
    }

    fn attributes(&self) -> usize {
        self.request.attributes.len()
    }

    fn cells(&self, sizes: &[f64]) -> f64 {
        if self.kind == FilterKind::Cartesian {
            return sizes.iter().product();
        }
        self.stored.cells(sizes)
    }

    fn cells_of_equal(&self, size: f64) -> f64 {
        if self.kind == FilterKind::Cartesian {
            return size.powi(self.attributes() as i32);
        }
        self.stored.cells_of_equal(size)
    }

    /// Predicted rate of each wanted combination.
    fn rates(&self, sizes: &[f64], probes: u32) -> Vec<Option<f64>> {
        let rate = |subsets: &Vec<u32>| -> f64 {
            let of_subset = |&subset: &u32| {
                let fpr = self.rate_of(subset, sizes, probes);
                // The only value of a query for one attribute is new, or the query is no negative.
                if subset.is_power_of_two() && subsets.len() > 1 {
                    self.request.known + (1.0 - self.request.known) * fpr
                } else {
                    fpr
                }
            };
            subsets.iter().map(of_subset).product()
        };
        self.asked
            .iter()
            .map(|subsets| Some(rate(subsets)))
            .collect()
    }

    /// Rate of a stored combination that does not occur.
    fn rate_of(&self, subset: u32, sizes: &[f64], probes: u32) -> f64 {
        let elements = &self.request.elements;
        let members = (0..sizes.len()).filter(|member| subset >> member & 1 == 1);
        let cells: f64 = members.map(|member| sizes[member]).product();
        let anywhere = bloom_fpr(cells, probes, elements.of(subset));
        if subset.count_ones() < 2 || self.request.known <= 0.0 {
            return anywhere;
        }
        let in_rows = rate_in_rows(sizes, subset, probes, |mask| elements.of(mask));
        self.request.known * in_rows + (1.0 - self.request.known) * anywhere
    }

    /// These sizes with the best k, or with a given one.
    fn candidate(&self, sizes: &[f64], probes: Option<u32>) -> Candidate {
        let with = |probes: u32| {
            let rates = self.rates(sizes, probes);
            (probes, weighted(self.request, &rates, Some(1.0)))
        };
        let (probes, fpr) = match probes {
            Some(probes) => with(probes),
            None => (1..=MAX_PROBES as u32)
                .map(with)
                .min_by(|a, b| a.1.total_cmp(&b.1))
                .expect("there is at least one number of hash functions"),
        };
        Candidate {
            sizes: sizes.to_vec(),
            probes,
            fpr,
            cells: self.cells(sizes),
        }
    }

    fn equal(&self, size: u64) -> Vec<f64> {
        vec![size as f64; self.attributes()]
    }

    /// The largest equal sizes with at most so many cells.
    fn largest_equal(&self, most: f64) -> Option<Candidate> {
        let size = last(1, MOST_SIZE, |size| {
            self.cells_of_equal(size as f64) <= most
        })?;
        Some(self.candidate(&self.equal(size), None))
    }

    /// The least equal sizes that reach a rate, unless they have more than `most` cells.
    fn least_equal(&self, fpr: f64, most: f64) -> Option<Candidate> {
        let reaches = |size: u64| self.candidate(&self.equal(size), None).fpr <= fpr;
        let high = if most.is_finite() {
            last(1, MOST_SIZE, |size| {
                self.cells_of_equal(size as f64) <= most
            })?
        } else {
            MOST_SIZE
        };
        let size = least(1, high, reaches)?;
        Some(self.candidate(&self.equal(size), None))
    }

    /// The same for sizes in proportion to weights.
    fn weighted(&self, weights: &[f64], goal: Goal) -> Option<Candidate> {
        let heaviest = weights.iter().copied().fold(0.0, f64::max);
        let sizes = |heavy: u64| -> Vec<f64> {
            let heavy = heavy as f64;
            weights
                .iter()
                .map(|weight| (heavy * (weight / heaviest)).floor().max(1.0))
                .collect()
        };
        match goal {
            Goal::Memory { bytes } => {
                let most = bytes as f64 * 8.0;
                let heavy = last(1, MOST_SIZE, |heavy| self.cells(&sizes(heavy)) <= most)?;
                Some(self.candidate(&sizes(heavy), None))
            }
            Goal::Rate { fpr } => {
                let reaches = |heavy: u64| self.candidate(&sizes(heavy), None).fpr <= fpr;
                let heavy = least(1, MOST_SIZE, reaches)?;
                Some(self.candidate(&sizes(heavy), None))
            }
            Goal::AttributeRate { .. } | Goal::MostElements { .. } => None,
        }
    }

    /// Better weights than equal ones, by changing one after the other as long as that helps.
    fn best_weights(&self, goal: Goal, from: Candidate) -> Candidate {
        let mut best = from;
        let singles = (0..self.attributes()).map(|one| self.request.elements.of(1 << one));
        // Other places to start from: sizes in proportion to the values of each attribute, and one
        // attribute much larger than the others. From equal sizes there may be no way that goes down
        // from its first step on.
        let attributes = self.attributes();
        let one_large = (0..attributes).flat_map(|large| {
            [64.0, 4096.0].map(|factor| {
                let weight = |one: usize| if one == large { factor } else { 1.0 };
                (0..attributes).map(weight).collect::<Vec<f64>>()
            })
        });
        let starts = [best.sizes.clone(), singles.collect()];
        for start in starts.into_iter().chain(one_large) {
            let Some(mut here) = self.weighted(&start, goal) else {
                continue;
            };
            let mut weights = start;
            for step in STEPS {
                let mut improved = true;
                let mut rounds = 0;
                while improved && rounds < MOST_ROUNDS {
                    improved = false;
                    rounds += 1;
                    for attribute in 0..weights.len() {
                        for factor in [step, 1.0 / step] {
                            let mut tried = weights.clone();
                            tried[attribute] *= factor;
                            if let Some(found) = self.weighted(&tried, goal)
                                && better(goal, &found, &here)
                            {
                                here = found;
                                weights = tried;
                                improved = true;
                            }
                        }
                    }
                }
            }
            if better(goal, &here, &best) {
                best = here;
            }
        }
        best
    }

    fn row(&self, chosen: &Candidate, structure: Structure) -> PlanRow {
        let design = Design {
            probes: Some(chosen.probes),
            size: (self.kind != FilterKind::Wcbfm)
                .then(|| chosen.sizes.iter().copied().fold(0.0, f64::max) as u64),
            unit: "values",
            sizes: if self.kind == FilterKind::Wcbfm {
                chosen.sizes.iter().map(|&size| size as u64).collect()
            } else {
                Vec::new()
            },
            cells: Some(chosen.cells),
            cuts: self.cuts.clone(),
            ..Design::default()
        };
        let rates = self.rates(&chosen.sizes, chosen.probes);
        let mut row = PlanRow::new(
            self.request,
            structure,
            design,
            (chosen.cells / 8.0).ceil(),
            rates,
        );
        if self.request.skewed {
            row.notes.push(
                "the values of the sample are unevenly spread, for which the formula of a matrix does not hold: its rate is higher".into(),
            );
        }
        let parts = self.asked.iter().filter(|asked| asked.len() > 1);
        if parts.flatten().any(|part| part.count_ones() > 1) {
            row.notes.push(
                "the rate of a combination that is cut holds if no pair of its values occurs; if all do, apart, the answer is yes with certainty".into(),
            );
        }
        if chosen.cells / 8.0 > (1_u64 << 40) as f64 {
            row.fits = false;
            row.notes
                .push("larger than 1 TiB, the most that is built".into());
        } else if !self.stored.is_buildable() && self.kind != FilterKind::Cartesian {
            row.fits = false;
            row.notes
                .push("stores more combinations than a matrix has (4096)".into());
        }
        row
    }
}

/// Factors by which weights are changed, large ones first.
const STEPS: [f64; 5] = [4.0, 2.0, 1.4, 1.15, 1.05];

/// Rounds over the attributes with one factor.
const MOST_ROUNDS: u32 = 12;

/// Whether a candidate serves the goal better than another.
fn better(goal: Goal, new: &Candidate, old: &Candidate) -> bool {
    let margin = 1.0 - 1e-9;
    match goal {
        Goal::Rate { .. } => new.cells < old.cells * margin,
        // Rates of 0, or of 1, are equal.
        _ => new.fpr < old.fpr * margin,
    }
}

/// Plans one of the matrices.
pub(super) fn row(request: &PlanRequest, kind: FilterKind, goal: Goal) -> PlanRow {
    let structure = Structure::Filter(kind);
    let attributes = request.attributes.len();
    let has_cuts = matches!(kind, FilterKind::Cbfm | FilterKind::Wcbfm);
    let families = match &request.cuts {
        Some(cuts) if has_cuts => vec![minimal(cuts)],
        _ if has_cuts => families(attributes),
        _ => vec![Vec::new()],
    };
    let impossible = |note: String| PlanRow::impossible(structure, request.wanted.len(), note);
    if let Goal::AttributeRate { fpr } = goal {
        return by_attribute_rate(request, kind, families, fpr).map_or_else(
            || impossible("no family of cuts has few enough combinations".into()),
            |(matrix, chosen)| matrix.row(&chosen, structure),
        );
    }
    let mut found: Vec<(Matrix<'_>, Candidate)> = Vec::new();
    let mut least_cells = f64::INFINITY;
    for cuts in families {
        let matrix = Matrix::new(request, kind, cuts);
        let candidate = match (goal, &request.weights) {
            (_, Some(weights)) if kind == FilterKind::Wcbfm => matrix.weighted(weights, goal),
            (Goal::Memory { bytes }, _) => matrix.largest_equal(bytes as f64 * 8.0),
            (Goal::Rate { fpr }, _) => {
                // A family that does not reach the rate with the cells of the best so far is out.
                let candidate = matrix.least_equal(fpr, least_cells);
                if let Some(candidate) = &candidate {
                    least_cells = least_cells.min(candidate.cells);
                }
                candidate
            }
            _ => None,
        };
        if let Some(candidate) = candidate {
            found.push((matrix, candidate));
        }
    }
    // Of equal ones the family that was found first, with the fewest cuts.
    found.sort_by(|(_, a), (_, b)| match goal {
        Goal::Rate { .. } => a.cells.total_cmp(&b.cells),
        _ => a.fpr.total_cmp(&b.fpr),
    });
    if kind == FilterKind::Wcbfm && request.weights.is_none() && attributes <= MOST_WEIGHED {
        found.truncate(REFINED);
        for (matrix, candidate) in &mut found {
            *candidate = matrix.best_weights(goal, candidate.clone());
        }
    }
    let best = found.into_iter().reduce(|best, next| {
        if better(goal, &next.1, &best.1) {
            next
        } else {
            best
        }
    });
    match (best, goal) {
        (Some((matrix, chosen)), _) => matrix.row(&chosen, structure),
        (None, Goal::Rate { fpr }) => impossible(format!("no size has a rate of {fpr:.3e}")),
        (None, _) => {
            let smallest = Matrix::new(request, kind, request.cuts.clone().unwrap_or_default());
            let bytes = (smallest.cells_of_equal(1.0) / 8.0).ceil();
            impossible(format!("the smallest has {bytes} bytes"))
        }
    }
}

/// By the rule of the paper's tables: the family of the fewest cells that keeps every wanted
/// combination below 1, or the one that was given.
fn by_attribute_rate(
    request: &PlanRequest,
    kind: FilterKind,
    families: Vec<Vec<u32>>,
    fpr: f64,
) -> Option<(Matrix<'_>, Candidate)> {
    let attributes = request.attributes.len();
    let probes = table_probes(fpr).clamp(1, MAX_PROBES as u32);
    let size = |elements: f64| attribute_size(fpr, elements).floor().max(1.0);
    let sizes: Vec<f64> = if kind == FilterKind::Wcbfm {
        (0..attributes)
            .map(|one| size(request.elements.of(1 << one)))
            .collect()
    } else {
        vec![size(request.elements.largest_single()); attributes]
    };
    let mut found: Vec<_> = families
        .into_iter()
        .map(|cuts| {
            let matrix = Matrix::new(request, kind, cuts);
            let candidate = matrix.candidate(&sizes, Some(probes));
            (matrix, candidate)
        })
        .collect();
    // The rate is the attributes', so that any wanted combination which is told at all is told better.
    found.sort_by(|(_, a), (_, b)| {
        (a.fpr > fpr)
            .cmp(&(b.fpr > fpr))
            .then(a.cells.total_cmp(&b.cells))
    });
    found.into_iter().next()
}

/// The largest number of elements by the rule of the paper's tables, not rounded: m real, all
/// attributes alike.
pub(super) fn real_elements(
    request: &PlanRequest,
    kind: FilterKind,
    bytes: u64,
    fpr: f64,
) -> Option<f64> {
    let cuts = match kind {
        FilterKind::Cartesian | FilterKind::Bfm => Vec::new(),
        FilterKind::Cbfm | FilterKind::Wcbfm => request.cuts.clone()?,
        _ => return None,
    };
    let matrix = Matrix::new(request, kind, cuts);
    let most = bytes as f64 * 8.0;
    let (mut low, mut high) = (0.0, most);
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if matrix.cells_of_equal(middle) <= most {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(low / attribute_size(fpr, 1.0))
}

/// The cuts that contain no other one.
fn minimal(cuts: &[u32]) -> Vec<u32> {
    let mut minimal: Vec<u32> = cuts
        .iter()
        .copied()
        .filter(|&cut| {
            !cuts
                .iter()
                .any(|&other| other != cut && cut & other == other)
        })
        .collect();
    minimal.sort_unstable();
    minimal.dedup();
    minimal
}

/// Predicted rates of a matrix with given parameters.
#[cfg(test)]
pub(super) fn rates_of(
    request: &PlanRequest,
    kind: FilterKind,
    cuts: &[u32],
    sizes: &[f64],
    probes: u32,
) -> Vec<Option<f64>> {
    Matrix::new(request, kind, cuts.to_vec()).rates(sizes, probes)
}
