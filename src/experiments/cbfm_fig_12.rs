//! CBFM paper, Fig. 12: memory of a BFM with 16 positions an attribute, for 2 to 8 attributes.

use super::result::{
    Cell, Chart, ChartAxis, ChartScale, Curve, CurveKind, ExperimentError, Measured,
};
use super::{Findings, Settings};
use crate::filters::matrix_sizing::{cells, cells_of_disjoint_cuts};

const SIZE: u64 = 16;

pub(super) fn run(_: &Settings) -> Result<Findings, ExperimentError> {
    let mut found = Findings {
        remarks: vec![
            "m = 16: a BFM has 17^d cells; beside it a CBFM with the cut {1,2}, from three attributes on. The text speaks of data of three attributes, yet d runs to 8. The figure has no numbers.".into(),
        ],
        ..Findings::default()
    };
    let (mut bfm, mut cbfm) = (Vec::new(), Vec::new());
    for attributes in 2..=8_u32 {
        let cuts: &[u32] = if attributes > 2 { &[0b11] } else { &[] };
        let cut_sizes: &[u32] = if attributes > 2 { &[2] } else { &[] };
        for (name, cuts, formula, points) in [
            ("BFM", &[][..], 17.0_f64.powi(attributes as i32), &mut bfm),
            (
                "CBFM",
                cuts,
                cells_of_disjoint_cuts(SIZE as f64, attributes, cut_sizes),
                &mut cbfm,
            ),
        ] {
            let counted = cells(&vec![SIZE; attributes as usize], cuts);
            let counted = counted.map_or(f64::INFINITY, |cells| cells as f64);
            let bytes = |cells: f64| cells / 8.0;
            found.cells.push(
                Cell::new(format!("d = {attributes}, {name}"))
                    .unit("bytes")
                    .formula(bytes(formula))
                    .measured(Measured::exactly(bytes(counted))),
            );
            points.push((f64::from(attributes), bytes(counted), 0.0));
        }
    }
    found.charts.push(Chart {
        name: "cbfm-fig-12".into(),
        title: "Memory with 16 positions an attribute".into(),
        caption: "17^d bits for the BFM; one cut takes a factor of 17² / 33 = 8.8.".into(),
        x: ChartAxis::new("attributes (d)", ChartScale::Linear),
        y: ChartAxis::new("memory", ChartScale::Bytes),
        curves: vec![
            Curve::new("BFM", CurveKind::Measured, bfm),
            Curve::new("CBFM", CurveKind::Measured, cbfm),
        ],
    });
    Ok(found)
}
