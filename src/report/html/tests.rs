//! Pages are well formed, hold what was put into them, and nothing in them can do anything.

use super::*;
use crate::report::figure::{Axis, Point, Scale, Series, SeriesStyle};
use crate::report::heading::Heading;
use crate::zone::Zone;
use roxmltree::{Document as Xml, Node, ParsingOptions};

const HOSTILE: &str = "</script></style><img src=x onerror=alert(1)>\"'&lt;<!--\u{2028}";

fn example() -> Document {
    let axis = |scale| Axis { label: HOSTILE.into(), scale };
    let points = (0..5).map(|i| Point::new(f64::from(i), f64::from(i * i)));
    let figure = |drawing| Block::Figure(Figure::new(HOSTILE, HOSTILE, HOSTILE, drawing));
    let curve = Series { name: HOSTILE.into(), points: points.collect(), style: SeriesStyle::Line };
    let mut document = Document {
        title: HOSTILE.into(),
        label: HOSTILE.into(),
        command: Some(HOSTILE.into()),
        ..Document::default()
    };
    document.both([
        Block::Answer(HOSTILE.into()),
        Block::Warning(HOSTILE.into()),
        Block::Section(HOSTILE.into()),
        Block::Sentence(HOSTILE.into()),
        figure(Drawing::lines(axis(Scale::Time(Zone::UTC)), axis(Scale::Linear), vec![curve; 2])),
        figure(Drawing::Bars {
            categories: vec![HOSTILE.into()],
            y: axis(Scale::Linear),
            series: vec![(HOSTILE.into(), vec![Some(1.0)])],
        }),
        figure(Drawing::HeatMap {
            rows: vec![HOSTILE.into()],
            columns: vec![HOSTILE.into()],
            values: vec![vec![Some(3.0)]],
            letters: vec![vec![HOSTILE.into()]],
            shade: axis(Scale::Log),
        }),
        Block::Table(TableView::new([Heading::text(HOSTILE)], [vec![HOSTILE.into()]])),
    ]);
    document
}

/// The page without the code's own style and script, which are no XML.
fn markup_of(html: &str) -> String {
    let style = format!("\n{STYLE}{}", svg::STYLE);
    html.replace(&style, "").replace(&format!("\n{SCRIPT}"), "")
}

#[test]
fn hostile_names_are_text_everywhere() {
    let html = page(&example());
    let text = markup_of(&html);
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let document = Xml::parse_with_options(&text, options).unwrap();
    let elements = || document.descendants().filter(Node::is_element);
    let count = |name: &str| elements().filter(|n| n.tag_name().name() == name).count();
    assert_eq!(count("img"), 0);
    assert_eq!(count("script"), 2);
    assert_eq!(count("style"), 1);
    for node in elements() {
        for attribute in node.attributes() {
            let name = attribute.name();
            assert!(!name.starts_with("on") && name != "style", "{name}");
            assert!(!["src", "href", "action"].contains(&name), "{name}");
        }
    }
    assert_eq!(count("figure"), 3);
    assert_eq!(count("details"), 3);
    assert_eq!(count("button"), 2 + (3 + 2 + 2) + 1, "two keys, and the heads of four tables");
    let heading = elements().find(|n| n.tag_name().name() == "h1").unwrap();
    assert_eq!(heading.text(), Some(HOSTILE));
    assert_eq!(count("html"), 1);
}

#[test]
fn the_policy_allows_exactly_what_is_there() {
    let html = page(&example());
    let between = |from: &str, to: &str| {
        let start = html.find(from).unwrap() + from.len();
        html[start..start + html[start..].find(to).unwrap()].to_owned()
    };
    let policy = between("Content-Security-Policy\" content=\"", "\"");
    let policy = policy.replace("&#39;", "'");
    let style = digest(&between("<style>", "</style>"));
    let script = digest(&between("<script>", "</script>"));
    assert_eq!(
        policy,
        format!(
            "default-src 'none'; style-src '{style}'; script-src '{script}'; base-uri 'none'; form-action 'none'"
        )
    );
    assert!(!SCRIPT.contains("</") && !SCRIPT.contains("innerHTML"));
    assert!(
        !html.contains("http://")
            || html.matches("http://").count()
                == html.matches("http://www.w3.org/2000/svg").count()
    );
    assert!(!html.contains("https://"));
}

#[test]
fn places_are_told_for_every_figure() {
    let html = page(&example());
    let start = html.find("id=\"places\">").unwrap() + "id=\"places\">".len();
    let json = &html[start..start + html[start..].find("</script>").unwrap()];
    let places: serde_json::Value = serde_json::from_str(json).unwrap();
    assert_eq!(places["figure-0"]["shape"], "lines");
    assert_eq!(places["figure-0"]["x"].as_array().unwrap().len(), 5);
    assert_eq!(places["figure-0"]["y"].as_array().unwrap().len(), 2);
    assert_eq!(places["figure-1"]["shape"], "bars");
    assert_eq!(places["figure-2"]["bands"], serde_json::json!([1, 1]));
}

#[test]
fn a_page_of_nothing_is_a_page() {
    let html = page(&Document::default());
    assert!(html.starts_with("<!DOCTYPE html>") && html.ends_with("</html>\n"));
}

#[test]
fn warnings_stand_before_everything_else() {
    let html = page(&example());
    let [warnings, main] = ["class=\"warnings\"", "<main>"].map(|text| html.find(text).unwrap());
    assert!(warnings < main);
    assert!(!page(&Document::default()).contains("class=\"warnings\""));
}

#[test]
fn a_long_table_says_how_long_it_is() {
    let of = |rows: usize| {
        let rows = (0..rows).map(|i| vec!["2023-11-14T22:13:20.000Z".to_owned(), i.to_string()]);
        let table = TableView::new([Heading::text("from"), Heading::number("n")], rows);
        let mut document = Document::default();
        document.page([Block::Table(table)]);
        page(&document)
    };
    assert!(of(72).contains("72 rows; scroll for more"));
    assert!(!of(9).contains("scroll for more"));
    // Times stay in one line.
    assert!(of(9).contains("<td class=\"short\">2023-11-14T22:13:20.000Z</td>"));
}
