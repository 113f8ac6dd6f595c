//! Compares the number of packets of each capture, their times and link types with the manifest,
//! whose figures come from Wireshark.

use crate::manifest::Manifest;
use flowsieve::trace::{Capture, InputFormat, TraceBatch, TraceErrorKind};
use std::collections::BTreeMap;
use std::path::Path;

/// Files whose number of packets differs from the manifest on purpose, with the number read here
/// (`None` if the file is refused) and the reason.
const DIFFERENCES: &[(&str, Option<u64>, &str)] = &[
    ("encap/tcpdump-edsa.pcap", Some(10), LINK),
    ("malformed/tcpdump-juniper_es_oobr.pcap", Some(1), LINK),
    ("malformed/tcpdump-juniper_monitor_invalid_cookie_length.pcap", Some(1), LINK),
    ("formats/libtrace-legacy-atm.gz", None, DAG),
    ("formats/libtrace-legacy-eth.gz", None, DAG),
    ("formats/tcptrace-all.snoop.gz", None, "snoop is refused with the command that converts it"),
    (
        "malformed/pcapplusplus-clusterfuzz-testcase-minimized-FuzzTarget-5631583764873216",
        None,
        RESERVED,
    ),
    (
        "malformed/pcapplusplus-clusterfuzz-testcase-minimized-FuzzTarget-5752969003008000",
        None,
        RESERVED,
    ),
];

/// Files with fractions of a second that are more than a second. The figures of the manifest come
/// from printed times, in which such fractions overflow or run into the seconds; here they are
/// added to the seconds.
const ODD_FRACTIONS: &[&str] = &[
    "encap/suricata-transform-base64-7296__input.pcap",
    "malformed/pcapplusplus-clusterfuzz-testcase-minimized-FuzzTarget-5696447256461312",
    "malformed/suricata-bug-6875-01__fuzz.pcap",
    "malformed/tcpdump-timestamp_invalid_nano.pcap",
];

const LINK: &str = "Wireshark opens no file of this link type, which the manifest has as 0 packets; the \
                    records are sound, and are counted as packets that cannot be decoded";
const DAG: &str = "legacy DAG records have no magic number and no type; refused with a hint";
const RESERVED: &str = "reserved bits of the link type are set: refused, as by Wireshark, which the manifest \
                        has as 0 packets";

/// The result of reading a file to its end.
#[derive(Default)]
struct Reading {
    /// `None` if the file was refused.
    packets: Option<u64>,
    problem: Option<String>,
    first_ns: Option<i64>,
    last_ns: Option<i64>,
    /// Link types by number, in the order of their first packets.
    links: Vec<u16>,
}

impl Reading {
    fn duration_seconds(&self) -> f64 {
        let between = self.first_ns.zip(self.last_ns).map(|(first, last)| last - first);
        between.unwrap_or(0) as f64 / 1e9
    }
}

fn read(path: &Path, format: InputFormat) -> Reading {
    let mut reading = Reading::default();
    let mut capture = match Capture::open(path, format) {
        Ok(capture) => capture,
        Err(error) => {
            let refused = matches!(
                error.kind,
                TraceErrorKind::NotACapture { .. }
                    | TraceErrorKind::CorruptHeader { .. }
                    | TraceErrorKind::UnsupportedVersion { .. }
            );
            reading.packets = if refused { None } else { Some(0) };
            reading.problem = Some(error.to_string());
            return reading;
        }
    };
    let mut packets = 0;
    loop {
        match capture.next_batch() {
            Ok(Some(TraceBatch::Packets { packets: batch, bytes })) => {
                for packet in batch {
                    let end = packet.start as usize + packet.captured as usize;
                    assert!(end <= bytes.len(), "{}", path.display());
                    let time = packet.time_ns;
                    reading.first_ns = Some(reading.first_ns.map_or(time, |first| first.min(time)));
                    reading.last_ns = Some(reading.last_ns.map_or(time, |last| last.max(time)));
                    if !reading.links.contains(&packet.link.0) {
                        reading.links.push(packet.link.0);
                    }
                }
                packets += batch.len() as u64;
            }
            Ok(Some(TraceBatch::Log(_))) => panic!("{} is no log", path.display()),
            Ok(None) => break,
            Err(error) => reading.problem = Some(error.to_string()),
        }
    }
    reading.packets = Some(packets);
    reading
}

/// Returns the link type in a description such as `gzip of pcap LE usec / EN10MB(1)`.
fn described_link(description: &str) -> Option<u16> {
    let (_, links) = description.split_once(" / ")?;
    if links.contains('+') {
        return None;
    }
    let number = links.rsplit_once('(')?.1.split_once(')')?.0;
    match number.parse().ok()? {
        // The reader unwraps this to the link type inside.
        197 => None,
        // Numbers of raw IP on some systems.
        12 | 14 => Some(101),
        link => Some(link),
    }
}

pub(crate) fn every_capture_is_read_as_the_manifest_says(folder: &Path) {
    let manifest = Manifest::read(folder);
    let differences: BTreeMap<&str, Option<u64>> =
        DIFFERENCES.iter().map(|&(file, packets, _)| (file, packets)).collect();
    let mut wrong = Vec::new();
    let mut files = 0;
    for file in manifest.files() {
        let cell = |column| manifest.cell(file, column);
        let description = cell("format_linktype");
        let tsh = Path::new(file).extension().is_some_and(|extension| extension == "tsh");
        let format = if tsh { InputFormat::Tsh } else { InputFormat::Auto };
        let reading = read(&folder.join(file), format);
        if let Some(problem) = &reading.problem {
            eprintln!("{problem}");
        }
        let expected = match differences.get(file) {
            Some(&packets) => packets,
            None => cell("packets").parse().ok(),
        };
        if reading.packets != expected {
            let read = reading.packets;
            wrong.push(format!("{file} ({description}): {read:?} packets, not {expected:?}"));
        }
        let seconds = cell("duration_s").parse::<f64>().unwrap_or(0.0);
        let read = reading.duration_seconds();
        let decimals = cell("duration_s").split_once('.').map_or(0, |(_, decimals)| decimals.len());
        // The manifest has the times of two files in milliseconds only, and no trailing zeros.
        let precise = if cell("figures_by") == "python" || decimals < 4 { 1e-3 } else { 2e-6 };
        let comparable = !differences.contains_key(file) && !ODD_FRACTIONS.contains(&file);
        if comparable && (read - seconds).abs() > precise {
            wrong.push(format!("{file} ({description}): {read} s, not {seconds} s"));
        }
        if let Some(link) = described_link(description)
            && reading.links != [link]
            && !reading.links.is_empty()
        {
            let read = &reading.links;
            wrong.push(format!("{file} ({description}): link types {read:?}"));
        }
        files += 1;
    }
    eprintln!("{files} captures read");
    for (file, packets, reason) in DIFFERENCES {
        eprintln!("accepted: {file}: {packets:?}: {reason}");
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
