//! The findings of an experiment as plain data, and the rules that judge its figures.

use flowsieve_engine::named_enum;

/// A published table or figure, recomputed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Experiment {
    /// Name in the command line: `a-z`, `0-9` and `-`.
    pub name: &'static str,
    /// The table or figure that is recomputed.
    pub title: &'static str,
    /// The publication.
    pub source: &'static str,
    /// Method, and remarks on the publication, a sentence or two each.
    pub remarks: Vec<String>,
    /// The figures, in the order of the publication.
    pub cells: Vec<Cell>,
    /// Its charts.
    pub charts: Vec<Chart>,
    /// Problems of captures that were not read to their ends, a sentence each.
    pub problems: Vec<String>,
}

/// A measured figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Mean over the repetitions.
    pub mean: f64,
    /// Standard error of the mean; 0 for counts without chance.
    pub std_error: f64,
}

impl Measured {
    /// Returns a count without chance.
    pub const fn exactly(mean: f64) -> Self {
        Self { mean, std_error: 0.0 }
    }
}

/// A printed figure and its meaning: the true value is between `least` and `most`.
///
/// The allowed deviation follows from how a figure is printed, by three rules that are the same for
/// all figures: a number is as exact as half of its last digit, or exact if it counts something; a
/// simulation has four of its standard errors in addition; and a claim in words has the range of
/// its words. So the same deviation from the same figure has the same verdict.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Printed {
    /// The figure.
    pub value: f64,
    /// The least true value that would be printed as this.
    pub least: f64,
    /// The largest.
    pub most: f64,
}

/// One figure of a table: as published, by formula, and as measured here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// Its name, unique in its experiment.
    pub label: String,
    /// Unit of all three, empty for plain numbers and shares.
    pub unit: &'static str,
    /// The printed figure.
    pub paper: Option<Printed>,
    /// The formula's value.
    pub formula: Option<f64>,
    /// The measurement.
    pub measured: Option<Measured>,
    /// Difference between formula and measurement that rounding to whole numbers allows.
    pub rounding: f64,
    /// Whether the formula is known not to hold, as the reason says, so that the measurement need
    /// not agree with it.
    pub is_unbound: bool,
    /// Whether it is a time or a ratio of times, which differs between runs and machines.
    pub is_time: bool,
    /// Why paper and formula differ, or another remark; may be empty.
    pub reason: String,
}

named_enum! {
    /// The relation of paper, formula and measurement.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub enum Agreement {
        /// All that are present agree.
        Agrees = "agrees",
        /// The measurement deviates from the formula by more than [`TOLERANCE`] standard errors.
        Departs = "departs",
        /// The paper's figure is another one than formula or measurement.
        PaperDiffers = "paper-differs",
        /// There is nothing to hold it against.
        Shown = "shown",
    }
}

/// Standard errors that a measurement may be away from its formula.
pub const TOLERANCE: f64 = 4.0;

/// Relative difference that is due to the arithmetic of floating-point numbers.
const ARITHMETIC: f64 = 1e-9;

impl Cell {
    pub(super) fn new(label: impl Into<String>) -> Self {
        Self { label: label.into(), ..Self::default() }
    }

    pub(super) const fn unit(&mut self, unit: &'static str) -> &mut Self {
        self.unit = unit;
        self
    }

    /// Sets the paper's figure and the value of its last digit; 0 for counts.
    pub(super) const fn printed(&mut self, value: f64, last_digit: f64) -> &mut Self {
        let half = last_digit / 2.0;
        self.claimed(value, value - half, value + half)
    }

    /// Sets the paper's figure with this many significant digits.
    pub(super) fn printed_to(&mut self, value: f64, digits: i32) -> &mut Self {
        let first = value.abs().log10().floor() as i32;
        self.printed(value, 10.0_f64.powi(first - digits + 1))
    }

    /// The printed figure is that of a simulation with this standard error.
    pub(super) fn simulated(&mut self, std_error: f64) -> &mut Self {
        self.give_or_take(TOLERANCE * std_error)
    }

    /// Widens the range of the printed figure, because of what the paper leaves open.
    pub(super) fn give_or_take(&mut self, more: f64) -> &mut Self {
        if let Some(paper) = &mut self.paper {
            paper.least -= more;
            paper.most += more;
        }
        self
    }

    /// Sets a claim in words as a figure: the true value is between `least` and `most`.
    pub(super) const fn claimed(&mut self, value: f64, least: f64, most: f64) -> &mut Self {
        self.paper = Some(Printed { value, least, most });
        self
    }

    /// Sets a claim of this many "orders of magnitude".
    pub(super) fn orders(&mut self, orders: i32) -> &mut Self {
        let least = 10.0_f64.powi(orders);
        self.claimed(least, least, 10.0 * least)
    }

    pub(super) const fn formula(&mut self, value: f64) -> &mut Self {
        self.formula = Some(value);
        self
    }

    pub(super) const fn measured(&mut self, measured: Measured) -> &mut Self {
        self.measured = Some(measured);
        self
    }

    pub(super) const fn rounded(&mut self, rounding: f64) -> &mut Self {
        self.rounding = rounding;
        self
    }

    /// Shows the formula without holding the measurement to it.
    pub(super) const fn not_binding(&mut self) -> &mut Self {
        self.is_unbound = true;
        self
    }

    pub(super) const fn time(&mut self, measured: Measured) -> &mut Self {
        self.is_time = true;
        self.unit("ns").measured(measured)
    }

    /// Sets a ratio of times. Only the paper's claim is compared with it.
    pub(super) const fn ratio(&mut self, measured: Measured) -> &mut Self {
        self.is_time = true;
        self.unit("times").measured(measured)
    }

    pub(super) fn because(&mut self, reason: impl Into<String>) -> &mut Self {
        self.reason = reason.into();
        self
    }

    /// Returns the formula and the measurement, if the one has to agree with the other.
    fn compared(&self) -> Option<(f64, Measured)> {
        self.formula.zip(self.measured).filter(|_| !self.is_unbound)
    }

    /// Returns the deviation of the measurement from the formula in standard errors; `None` if one
    /// of them is missing, if the formula does not bind, or if there is no error.
    pub fn distance(&self) -> Option<f64> {
        let compared = self.compared().filter(|(_, measured)| measured.std_error > 0.0);
        compared.map(|(formula, measured)| (measured.mean - formula) / measured.std_error)
    }

    /// Returns whether the paper's figure cannot be judged, because there is only a measurement to
    /// compare it with, and that scatters more than the figure allows.
    fn is_too_noisy(&self) -> bool {
        let both = self.measured.zip(self.paper).filter(|_| self.formula.is_none());
        both.is_some_and(|(measured, paper)| {
            TOLERANCE * measured.std_error > (paper.most - paper.least) / 2.0
        })
    }

    /// Returns the relation of the three figures.
    pub fn agreement(&self) -> Agreement {
        if self.is_too_noisy() {
            return Agreement::Shown;
        }
        if let Some((formula, measured)) = self.compared().filter(|_| !self.is_time) {
            let allowed =
                TOLERANCE * measured.std_error + self.rounding + ARITHMETIC * formula.abs();
            let distance = (measured.mean - formula).abs();
            // A NaN agrees with nothing.
            if distance.is_nan() || distance > allowed {
                return Agreement::Departs;
            }
        }
        // The paper's claims about times are judged, too.
        let (truth, allowed) = match (self.formula, self.measured) {
            (Some(formula), _) => (formula, self.rounding),
            (None, Some(measured)) => (measured.mean, TOLERANCE * measured.std_error),
            (None, None) => return Agreement::Shown,
        };
        match self.paper {
            Some(paper) => {
                let allowed = allowed + ARITHMETIC * truth.abs();
                if (paper.least - allowed..=paper.most + allowed).contains(&truth) {
                    Agreement::Agrees
                } else {
                    Agreement::PaperDiffers
                }
            }
            None if self.compared().is_some() && !self.is_time => Agreement::Agrees,
            None => Agreement::Shown,
        }
    }

    /// Returns the verdict in one line.
    pub fn verdict(&self) -> String {
        let head: &str = match self.agreement() {
            Agreement::Agrees if self.paper.is_some() => "agrees",
            Agreement::Agrees => "formula agrees",
            Agreement::Departs => match self.distance() {
                Some(distance) => &format!(
                    "DEPARTS: measured {distance:+.1} standard errors away from the formula"
                ),
                None => "DEPARTS: the measurement is not what the formula says",
            },
            Agreement::PaperDiffers if self.compared().is_some() => {
                "formula agrees, the paper differs"
            }
            Agreement::PaperDiffers => "the paper differs",
            Agreement::Shown if self.is_too_noisy() && self.is_time => {
                "not judged, the times scatter too much"
            }
            Agreement::Shown if self.is_too_noisy() => {
                "not judged, the measurement scatters too much"
            }
            Agreement::Shown if self.is_time => "measured on this machine",
            Agreement::Shown => "",
        };
        match (head, &*self.reason) {
            ("", reason) => reason.to_owned(),
            (head, "") => head.to_owned(),
            (head, reason) => format!("{head}: {reason}"),
        }
    }
}

impl Experiment {
    /// Returns the cells whose measurement deviates from the formula.
    pub fn departures(&self) -> impl Iterator<Item = &Cell> {
        self.cells.iter().filter(|cell| cell.agreement() == Agreement::Departs)
    }
}

/// A chart: curves over a common axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Short name, made of `a-z`, `0-9` and `-`.
    pub name: String,
    /// Heading.
    pub title: String,
    /// The point of the chart.
    pub caption: String,
    /// Horizontal.
    pub x: ChartAxis,
    /// Vertical.
    pub y: ChartAxis,
    /// The curves.
    pub curves: Vec<Curve>,
}

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct ChartAxis {
    /// The quantity, with its unit.
    pub label: String,
    /// The scale.
    pub scale: ChartScale,
}

named_enum! {
    /// The scale of an axis.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub enum ChartScale {
        /// Evenly.
        Linear = "linear",
        /// Logarithmic.
        Log = "log",
        /// Logarithmic, in bytes.
        Bytes = "bytes",
    }
}

/// A curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Name.
    pub name: String,
    /// Its origin.
    pub kind: CurveKind,
    /// x, y and the standard error of y, in the order of x.
    pub points: Vec<(f64, f64, f64)>,
}

named_enum! {
    /// The origin of a curve.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub enum CurveKind {
        /// The exact count.
        Exact = "exact",
        /// A formula.
        Formula = "formula",
        /// Measurements.
        Measured = "measured",
    }
}

/// The points of a measured curve and of the formula for it.
pub(super) struct CurvePair {
    measured: Curve,
    formula: Curve,
}

impl CurvePair {
    pub(super) fn new(name: impl Into<String>) -> Self {
        let measured = Curve::measured(name, []);
        let name = format!("{}, formula", measured.name);
        Self { measured, formula: Curve::new(name, CurveKind::Formula, Vec::new()) }
    }

    pub(super) fn push(&mut self, x: f64, formula: f64, measured: Measured) {
        self.measured.points.push((x, measured.mean, measured.std_error));
        self.formula.points.push((x, formula, 0.0));
    }

    /// Adds the formula and the measurement of a cell, if it has both.
    pub(super) fn push_cell(&mut self, x: f64, cell: &Cell) {
        if let Some((formula, measured)) = cell.formula.zip(cell.measured) {
            self.push(x, formula, measured);
        }
    }

    /// Returns both curves; none without points.
    pub(super) fn curves(self) -> impl Iterator<Item = Curve> {
        let curves = [self.measured, self.formula].into_iter();
        curves.filter(|curve| !curve.points.is_empty())
    }
}

impl Curve {
    pub(super) fn new(
        name: impl Into<String>,
        kind: CurveKind,
        points: Vec<(f64, f64, f64)>,
    ) -> Self {
        Self { name: name.into(), kind, points }
    }

    /// Adds a point to the curve of this name.
    pub(super) fn add_measured(curves: &mut Vec<Self>, name: &str, x: f64, y: Measured) {
        match curves.iter_mut().find(|curve| curve.name == name) {
            Some(curve) => curve.points.push((x, y.mean, y.std_error)),
            None => curves.push(Self::measured(name, [(x, y)])),
        }
    }

    /// Returns a curve of measurements over x.
    pub(super) fn measured(
        name: impl Into<String>,
        points: impl IntoIterator<Item = (f64, Measured)>,
    ) -> Self {
        let points = points.into_iter().map(|(x, y)| (x, y.mean, y.std_error));
        Self::new(name, CurveKind::Measured, points.collect())
    }
}

/// Why an experiment has no result, in a sentence.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ExperimentError(pub(super) String);

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(mean: f64, std_error: f64) -> Measured {
        Measured { mean, std_error }
    }

    #[test]
    fn a_wrong_formula_is_found_out() {
        let cell =
            |formula: f64| Cell::new("x").formula(formula).measured(measured(0.1, 0.01)).clone();
        assert_eq!(cell(0.1).agreement(), Agreement::Agrees);
        assert_eq!(cell(0.139).agreement(), Agreement::Agrees);
        assert_eq!(cell(0.141).agreement(), Agreement::Departs);
        assert_eq!(cell(0.059).agreement(), Agreement::Departs);
        assert_eq!(cell(f64::NAN).agreement(), Agreement::Departs);
        assert!(cell(0.2).verdict().starts_with("DEPARTS"), "{}", cell(0.2).verdict());
        assert!((cell(0.2).distance().unwrap() + 10.0).abs() < 1e-9);
        let counted = Cell::new("x").formula(3.0).measured(Measured::exactly(3.000_001)).clone();
        assert_eq!(counted.agreement(), Agreement::Departs);
        assert_eq!(counted.clone().rounded(0.1).agreement(), Agreement::Agrees);
        assert_eq!(cell(0.2).not_binding().agreement(), Agreement::Shown);
    }

    #[test]
    fn the_paper_is_held_to_its_own_digits() {
        let cell = |paper: f64| Cell::new("x").printed(paper, 0.01).formula(0.123).clone();
        assert_eq!(cell(0.12).agreement(), Agreement::Agrees);
        assert_eq!(cell(0.13).agreement(), Agreement::PaperDiffers);
        assert_eq!(cell(0.13).because("of a slip").verdict(), "the paper differs: of a slip");
        let simulated = cell(0.12).measured(measured(0.2, 0.01)).clone();
        assert_eq!(simulated.agreement(), Agreement::Departs);
        let alone = |mean: f64, std_error: f64| {
            let mut cell = Cell::new("x");
            cell.printed(1.0, 0.2).measured(measured(mean, std_error));
            cell.agreement()
        };
        assert_eq!(alone(1.15, 0.02), Agreement::Agrees);
        assert_eq!(alone(1.2, 0.02), Agreement::PaperDiffers);
        // A measurement that scatters more than the figure allows neither confirms nor refutes it.
        assert_eq!(alone(1.3, 0.1), Agreement::Shown);
    }

    #[test]
    fn how_a_figure_is_printed_says_what_it_says() {
        let range = |cell: &mut Cell| {
            let paper = cell.paper.unwrap();
            [paper.least, paper.most]
        };
        let close = |found: [f64; 2], expected: [f64; 2]| {
            let near = |at: usize| (found[at] - expected[at]).abs() < 1e-12 * expected[at].abs();
            assert!(near(0) && near(1), "{found:?} {expected:?}");
        };
        close(range(Cell::new("x").printed(42.0, 0.0)), [42.0, 42.0]);
        close(range(Cell::new("x").printed_to(0.0456, 3)), [0.045_55, 0.045_65]);
        close(range(Cell::new("x").printed_to(1e-6, 1)), [0.5e-6, 1.5e-6]);
        let simulated = range(Cell::new("x").printed(3.0, 1.0).simulated(0.25));
        close(simulated, [1.5, 4.5]);
        close(range(Cell::new("x").orders(2)), [100.0, 1000.0]);
    }

    #[test]
    fn times_are_judged_by_claims_only() {
        let cell = Cell::new("x").time(measured(12.0, 0.1)).clone();
        assert_eq!(cell.agreement(), Agreement::Shown);
        assert_eq!(cell.verdict(), "measured on this machine");
        let claimed = |ratio: f64| {
            let mut cell = Cell::new("x");
            cell.claimed(2.5, 2.0, 3.0).ratio(measured(ratio, 0.01));
            cell.agreement()
        };
        assert_eq!(claimed(2.2), Agreement::Agrees);
        assert_eq!(claimed(1.97), Agreement::Agrees);
        assert_eq!(claimed(1.9), Agreement::PaperDiffers);
        assert_eq!(claimed(3.1), Agreement::PaperDiffers);
        let mut noisy = Cell::new("x");
        noisy.claimed(2.5, 2.0, 3.0).ratio(measured(2.5, 0.2));
        assert_eq!(noisy.agreement(), Agreement::Shown);
    }
}
