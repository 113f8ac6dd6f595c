//! Reads a folder of real captures and compares the number of packets of each with its manifest, whose
//! figures come from Wireshark.
//!
//! The folder is named by the environment variable `FLOWSIEVE_TRACES`; without it nothing is checked,
//! which is said aloud.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use flowsieve::trace::{Capture, InputFormat, TraceBatch, TraceErrorKind};

/// Files whose number of packets differs from the manifest's on purpose, with the number read here and
/// the reason. `None` is a file that is refused.
const DIFFERENCES: &[(&str, Option<u64>, &str)] = &[];

fn count(path: &Path, format: InputFormat) -> (Option<u64>, Option<String>) {
    let mut capture = match Capture::open(path, format) {
        Ok(capture) => capture,
        Err(error) => {
            let refused = matches!(
                error.kind,
                TraceErrorKind::NotACapture { .. }
                    | TraceErrorKind::CorruptHeader { .. }
                    | TraceErrorKind::UnsupportedVersion { .. }
            );
            return (if refused { None } else { Some(0) }, Some(error.to_string()));
        }
    };
    let (mut packets, mut problem) = (0, None);
    loop {
        match capture.next_batch() {
            Ok(Some(TraceBatch::Packets { packets: batch, bytes })) => {
                for packet in batch {
                    let end = packet.start as usize + packet.captured as usize;
                    assert!(end <= bytes.len(), "{}", path.display());
                }
                packets += batch.len() as u64;
            }
            Ok(Some(TraceBatch::DnsLog(_))) => panic!("{} is no log", path.display()),
            Ok(None) => return (Some(packets), problem),
            Err(error) => problem = Some(error.to_string()),
        }
    }
}

#[test]
fn every_capture_has_the_packets_of_the_manifest() {
    let Some(folder) = std::env::var_os("FLOWSIEVE_TRACES").map(PathBuf::from) else {
        eprintln!("SKIPPED: FLOWSIEVE_TRACES is not set, so no real capture was read");
        return;
    };
    let manifest = std::fs::read_to_string(folder.join("MANIFEST.tsv")).expect("the manifest is there");
    let differences: BTreeMap<&str, Option<u64>> =
        DIFFERENCES.iter().map(|&(file, packets, _)| (file, packets)).collect();
    let mut wrong = Vec::new();
    let mut files = 0;
    for line in manifest.lines().filter(|line| !line.starts_with('#') && !line.starts_with("file\t")) {
        let columns: Vec<&str> = line.split('\t').collect();
        let file = columns[0];
        let path = folder.join(file);
        let tsh = Path::new(file).extension().is_some_and(|extension| extension == "tsh");
        let format = if tsh { InputFormat::Tsh } else { InputFormat::Auto };
        let (read, problem) = count(&path, format);
        let expected = match differences.get(file) {
            Some(&packets) => packets,
            None => columns[2].parse().ok(),
        };
        if let Some(problem) = &problem {
            eprintln!("{problem}");
        }
        if read != expected {
            wrong.push(format!("{file} ({}): {read:?}, expected {expected:?}", columns[1]));
        }
        files += 1;
    }
    eprintln!("{files} captures read");
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
