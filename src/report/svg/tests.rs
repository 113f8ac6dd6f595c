//! Figures are well formed, say what they show, and stay small.

use super::*;
use crate::report::figure::{Axis, Point, Scale, Series, SeriesStyle};
use crate::zone::Zone;
use roxmltree::{Document, Node};

const HOSTILE: &str = "\"/><script>alert('x')</script>&amp;\u{202e}\u{0}]]>";

fn axis(label: &str, scale: Scale) -> Axis {
    Axis { label: label.into(), scale }
}

fn series(name: &str, style: SeriesStyle, points: &[(f64, f64, f64)]) -> Series {
    let points = points.iter().map(|&(x, y, error)| Point { x, y, errors: [error; 2] });
    Series { name: name.into(), points: points.collect(), style }
}

fn figure(drawing: Drawing) -> Figure {
    Figure { name: "test".into(), title: HOSTILE.into(), caption: HOSTILE.into(), drawing }
}

fn lines(x: Scale, y: Scale, series: Vec<Series>) -> Figure {
    figure(Drawing::lines(axis(HOSTILE, x), axis(HOSTILE, y), series))
}

/// Draws it both ways; checks that it is well formed and has nothing but drawing in it.
fn drawn(figure: &Figure) -> (String, Geometry) {
    let alone = standalone(figure, &[HOSTILE.to_owned()]);
    let Drawn { svg, geometry } = draw(figure, None);
    for text in [&alone, &svg] {
        let document = Document::parse(text).unwrap();
        let seen = HOSTILE.replace(['\u{202e}', '\u{0}'], "\u{fffd}");
        let title = document.root_element().first_element_child().unwrap();
        assert_eq!(title.text(), Some(seen.as_str()));
        for node in document.descendants().filter(Node::is_element) {
            let name = node.tag_name().name();
            let known = ["svg", "title", "desc", "style", "rect", "text", "g", "path"];
            assert!(known.contains(&name), "{name}");
            for attribute in node.attributes() {
                assert!(!attribute.name().starts_with("on"));
                assert!(attribute.name() != "href" && attribute.name() != "style");
                assert!(!attribute.value().contains("NaN"), "{text}");
                assert!(!attribute.value().contains("inf"), "{text}");
            }
        }
    }
    (svg, geometry)
}

fn paths<'a>(document: &'a Document<'_>, class: &str) -> Vec<&'a str> {
    document
        .descendants()
        .filter(|node| node.attribute("class") == Some(class))
        .filter_map(|node| node.attribute("d"))
        .collect()
}

#[test]
fn a_file_names_what_made_it() {
    let drawing = Drawing::Bars {
        categories: vec!["a".into()],
        y: axis("packets", Scale::Count),
        series: vec![("packets".into(), vec![Some(1.0)])],
    };
    let lines = ["subset filter, 256 KiB".to_owned(), "flowsieve count ".repeat(20)];
    let (with, without) = (standalone(&figure(drawing.clone()), &lines), figure(drawing));
    let document = Document::parse(&with).unwrap();
    let texts: Vec<&str> = document.descendants().filter_map(|node| node.text()).collect();
    assert!(texts.contains(&"subset filter, 256 KiB"), "{texts:?}");
    let command: Vec<&str> =
        texts.iter().copied().filter(|text| text.starts_with("flowsieve count")).collect();
    assert!(command.len() > 2 && command.iter().all(|line| line.len() < 115), "{command:?}");
    assert!(!draw(&without, None).svg.contains("flowsieve count"));
}

#[test]
fn every_scale_and_style_is_drawn() {
    let styles =
        [SeriesStyle::Reference, SeriesStyle::Line, SeriesStyle::Dashed, SeriesStyle::Points];
    for x in [Scale::Linear, Scale::Log, Scale::Time(Zone::UTC), Scale::Bytes, Scale::Percent] {
        for y in [Scale::Linear, Scale::Log, Scale::Bytes, Scale::Percent] {
            let points = [(1.0, 10.0, 1.0), (2.0, f64::NAN, 0.0), (4.0, 0.0, 20.0)];
            let all = styles.map(|style| series(HOSTILE, style, &points));
            let (svg, geometry) = drawn(&lines(x, y, all.into()));
            let document = Document::parse(&svg).unwrap();
            let groups = document.descendants().filter(|n| n.attribute("data-series").is_some());
            assert_eq!(groups.count(), 4);
            assert_eq!(paths(&document, "line").len(), 3, "points have no line");
            assert_eq!(geometry.y.len(), 4);
            assert_eq!(geometry.y[0].len(), 3);
            assert_eq!(geometry.y[0][1], None, "a gap");
        }
    }
}

#[test]
fn points_lie_where_they_belong() {
    let points = [(0.0, 0.0, 0.0), (5.0, 50.0, 0.0), (10.0, 100.0, 0.0)];
    let figure = lines(Scale::Linear, Scale::Linear, vec![series("a", SeriesStyle::Line, &points)]);
    let geometry = drawn(&figure).1;
    let (left, right) = (geometry.plot.left, geometry.plot.left + geometry.plot.width);
    let x: Vec<f64> = geometry.x.iter().copied().flatten().collect();
    assert!((x[0] - left).abs() < 0.1 && (x[2] - right).abs() < 0.1);
    assert!((x[1] - f64::midpoint(left, right)).abs() < 0.1);
    let y: Vec<f64> = geometry.y[0].iter().copied().flatten().collect();
    assert!((y[0] - geometry.plot.top - geometry.plot.height).abs() < 0.1);
    assert!((y[2] - geometry.plot.top).abs() < 0.1);
}

#[test]
fn gaps_break_the_line_and_a_point_alone_is_a_dot() {
    let points = [(0.0, 1.0, 0.0), (1.0, 2.0, 0.0), (2.0, f64::NAN, 0.0), (3.0, 1.0, 0.0)];
    let figure = lines(Scale::Linear, Scale::Linear, vec![series("a", SeriesStyle::Line, &points)]);
    let svg = drawn(&figure).0;
    let document = Document::parse(&svg).unwrap();
    let path = paths(&document, "line")[0];
    assert_eq!(path.matches('M').count(), 2);
    assert_eq!(path.matches('L').count(), 1);
    assert!(path.ends_with("h0.1"));
}

#[test]
fn a_long_series_stays_small_and_keeps_its_peak() {
    let point = |i: u32| match i {
        54_321 => (f64::from(i), 1000.0, 0.0),
        _ => (f64::from(i), f64::from(i % 13), 0.5),
    };
    let points: Vec<_> = (0..100_000).map(point).collect();
    let figure = lines(Scale::Linear, Scale::Linear, vec![series("a", SeriesStyle::Line, &points)]);
    let (svg, geometry) = drawn(&figure);
    assert!(svg.len() < 150_000, "{}", svg.len());
    let document = Document::parse(&svg).unwrap();
    let path = paths(&document, "band")[0];
    let top = format!(" {}", crate::report::markup::px(geometry.plot.top));
    assert!(path.contains(&top), "the peak reaches the top of the plot");
}

#[test]
fn bars_stand_or_lie_and_begin_at_zero() {
    let bars = |names: Vec<String>| {
        figure(Drawing::Bars {
            categories: names,
            y: axis("n", Scale::Linear),
            series: vec![
                ("a".into(), vec![Some(2.0), None, Some(-1.0)]),
                (HOSTILE.into(), vec![Some(0.0), Some(1.0), Some(1.0)]),
            ],
        })
    };
    let (svg, geometry) = drawn(&bars(vec!["x".into(), "y".into(), "z".into()]));
    assert!(!geometry.horizontal);
    let document = Document::parse(&svg).unwrap();
    let bars_drawn: Vec<f64> = document
        .descendants()
        .filter(|n| n.attribute("class") == Some("bar"))
        .map(|n| n.attribute("height").unwrap().parse().unwrap())
        .collect();
    assert_eq!(bars_drawn.len(), 5);
    assert!((bars_drawn[0] - 2.0 * bars_drawn[1]).abs() < 0.2);
    assert!(bars_drawn[2] == 0.0);
    let long = vec![HOSTILE.repeat(9); 6];
    assert!(drawn(&bars(long)).1.horizontal);
}

#[test]
fn shades_grow_with_the_values() {
    let figure = figure(Drawing::HeatMap {
        rows: vec![HOSTILE.into(), "b".into()],
        columns: vec!["c".into(), HOSTILE.into()],
        values: vec![vec![Some(1.0), Some(100.0)], vec![None, Some(10_000.0)]],
        letters: vec![vec!["M".into(), HOSTILE.into()]],
        shade: axis("packets", Scale::Log),
    });
    let svg = drawn(&figure).0;
    let document = Document::parse(&svg).unwrap();
    let shades: Vec<&str> =
        document.descendants().filter_map(|n| n.attribute("fill-opacity")).take(3).collect();
    assert_eq!(shades, ["0.08", "0.54", "1.00"]);
}

#[test]
fn what_is_empty_is_drawn_empty() {
    drawn(&lines(Scale::Time(Zone::UTC), Scale::Log, Vec::new()));
    drawn(&lines(Scale::Time(Zone::UTC), Scale::Log, vec![series("a", SeriesStyle::Line, &[])]));
    drawn(&figure(Drawing::Bars {
        categories: Vec::new(),
        y: axis("n", Scale::Percent),
        series: Vec::new(),
    }));
    drawn(&figure(Drawing::HeatMap {
        rows: Vec::new(),
        columns: Vec::new(),
        values: Vec::new(),
        letters: Vec::new(),
        shade: axis("n", Scale::Log),
    }));
}

#[test]
fn a_formula_has_the_colour_of_what_was_measured() {
    let series = |name: &str, style| Series {
        name: name.into(),
        points: vec![
            Point { x: 1.0, y: 0.5, errors: [0.1; 2] },
            Point { x: 2.0, y: -0.1, errors: [0.1; 2] },
        ],
        style,
    };
    let figure = figure(Drawing::lines(
        axis("memory", Scale::Linear),
        axis("rate", Scale::Log),
        vec![
            series("a", SeriesStyle::Points),
            series("a, formula", SeriesStyle::Dashed),
            series("b", SeriesStyle::Points),
            series("c, formula", SeriesStyle::Dashed),
        ],
    ));
    let svg = drawn(&figure).0;
    let document = Document::parse(&svg).unwrap();
    let groups: Vec<_> =
        document.descendants().filter(|n| n.attribute("data-series").is_some()).collect();
    let classes: Vec<&str> = groups.iter().map(|n| n.attribute("class").unwrap()).collect();
    let expected = ["s0 points", "s0 dashed", "s1 points", "s2 dashed"];
    assert_eq!(classes, expected.map(|class| format!("series {class}")));
    // The formula's line has no markers, and a point that cannot be drawn has no error bar.
    let marks = |i: usize| {
        let marks = groups[i].descendants();
        marks.filter(|n| n.attribute("class") == Some("mark")).count()
    };
    assert_eq!([marks(0), marks(1), marks(2)], [1, 0, 1]);
    let bars = paths(&document, "errors");
    assert!(bars.iter().all(|bar| bar.matches('V').count() == 1), "{bars:?}");
}

#[test]
fn more_curves_than_colours_stand_one_below_the_other() {
    let named = |count: usize| {
        let curves = (0..count).map(|i| {
            let points = [(1.0, 1.0, 0.0), (2.0, 3.0, 0.0)];
            series(&format!("curve {i}"), SeriesStyle::Line, &points)
        });
        let exact = series("exact", SeriesStyle::Reference, &[(1.0, 2.0, 0.0)]);
        let all = std::iter::once(exact).chain(curves).collect();
        lines(Scale::Linear, Scale::Linear, all)
    };
    let few = named(8);
    assert_eq!(keys(&few).len(), 9);
    let many = named(9);
    assert!(keys(&many).is_empty(), "names stand beside the curves");
    let (svg, geometry) = drawn(&many);
    let document = Document::parse(&svg).unwrap();
    let texts: Vec<&str> = document.descendants().filter_map(|n| n.text()).collect();
    assert!((0..9).all(|i| texts.contains(&format!("curve {i}").as_str())));
    // The truth is in every strip, and no two curves share one.
    assert_eq!(paths(&document, "lone").len(), 9);
    let heights: Vec<f64> = geometry.y[1..].iter().filter_map(|y| y[0]).collect();
    assert!(heights.is_sorted_by(|a, b| a + 40.0 < *b), "{heights:?}");
}

#[test]
fn a_rate_of_zero_is_written_as_zero() {
    let figure = figure(Drawing::Bars {
        categories: vec!["x".into()],
        y: axis("rate", Scale::PercentLog),
        series: vec![
            ("a".into(), vec![Some(0.0)]),
            ("b".into(), vec![Some(0.01)]),
            ("none".into(), vec![None]),
        ],
    });
    let svg = drawn(&figure).0;
    let document = Document::parse(&svg).unwrap();
    let zeros = |series: &str| {
        let groups = document.descendants();
        let mut groups = groups.filter(|n| n.attribute("data-series") == Some(series));
        let texts = groups.next().unwrap().descendants();
        texts.filter(|n| n.is_text() && n.text() == Some("0")).count()
    };
    assert_eq!([zeros("0"), zeros("1"), zeros("2")], [1, 0, 0]);
}

#[test]
fn labels_at_the_ends_are_within_the_picture() {
    for to in [1_700_000_019.0, 1_700_000_020.0, 1_700_000_001.5] {
        let points = [(1_700_000_000.0, 1.0, 0.0), (to, 1.0, 0.0)];
        let curve = series("a", SeriesStyle::Line, &points);
        let svg = drawn(&lines(Scale::Time(Zone::UTC), Scale::Count, vec![curve])).0;
        let document = Document::parse(&svg).unwrap();
        let axis = document.descendants();
        let axis = axis.filter(|n| n.attribute("class") == Some("axis-x"));
        let labels = axis.flat_map(|n| n.descendants());
        for label in labels.filter(|n| n.attribute("text-anchor") == Some("middle")) {
            let x: f64 = label.attribute("x").unwrap().parse().unwrap();
            // A letter is about 6.6 wide.
            let half = label.text().unwrap().chars().count() as f64 * 3.3;
            assert!(x - half >= 0.0 && x + half <= 760.0, "{:?}", label.text());
        }
    }
}
