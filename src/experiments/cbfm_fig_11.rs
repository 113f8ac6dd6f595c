//! CBFM paper, Fig. 11: memory of a BFM and of a CBFM with one cut pair, by the number of attributes.

use super::result::{
    Cell, Chart, ChartAxis, ChartScale, Curve, CurveKind, ExperimentError, Measured,
};
use super::{Findings, Settings};
use crate::filters::matrix_sizing::{attribute_size, cells, cells_of_disjoint_cuts};

const RATE: f64 = 0.1;
const ELEMENTS: f64 = 100.0;

pub(super) fn run(_: &Settings) -> Result<Findings, ExperimentError> {
    let size = attribute_size(RATE, ELEMENTS).floor();
    let mut found = Findings {
        remarks: vec![format!(
            "n = {ELEMENTS}, ε = {RATE}, so m = {size}. By formula (m+1)^d, and (4) for the cut; counted by adding up the combinations. The figure has no numbers; its text says two orders."
        )],
        ..Findings::default()
    };
    let (mut bfm, mut cbfm) = (Vec::new(), Vec::new());
    for attributes in 1..=4_u32 {
        let cut_sizes: &[u32] = if attributes > 2 { &[2] } else { &[] };
        let cuts: &[u32] = if attributes > 2 { &[0b11] } else { &[] };
        let bytes = |cuts: &[u32]| {
            let cells = cells(&vec![size as u64; attributes as usize], cuts);
            cells.map_or(f64::INFINITY, |cells| cells as f64 / 8.0)
        };
        let whole = (size + 1.0).powi(attributes as i32) / 8.0;
        let cut = cells_of_disjoint_cuts(size, attributes, cut_sizes) / 8.0;
        for (name, formula, counted, points) in [
            ("BFM", whole, bytes(&[]), &mut bfm),
            ("CBFM", cut, bytes(cuts), &mut cbfm),
        ] {
            found.cells.push(
                Cell::new(format!("d = {attributes}, {name}"))
                    .unit("bytes")
                    .formula(formula)
                    .measured(Measured::exactly(counted)),
            );
            points.push((f64::from(attributes), counted, 0.0));
        }
        if attributes > 2 {
            found.cells.push(
                Cell::new(format!("d = {attributes}, BFM / CBFM"))
                    .paper(100.0, 200.0)
                    .formula((size + 1.0).powi(2) / (2.0 * size + 1.0))
                    .measured(Measured::exactly(bytes(&[]) / bytes(cuts)))
                    .because("\"two orders\""),
            );
        }
    }
    found.charts.push(Chart {
        name: "cbfm-fig-11".into(),
        title: "Memory by the number of attributes, n = 100, ε = 0.1".into(),
        caption: "One cut pair from three attributes on.".into(),
        x: ChartAxis::new("attributes (d)", ChartScale::Linear),
        y: ChartAxis::new("memory", ChartScale::Bytes),
        curves: vec![
            Curve::new("BFM", CurveKind::Measured, bfm),
            Curve::new("CBFM", CurveKind::Measured, cbfm),
        ],
    });
    Ok(found)
}
