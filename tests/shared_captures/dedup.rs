//! Compares deduplication with editcap, and cut packets with tshark.

use crate::library::dedup::{Frame, frames, plan, run};
use flowsieve::dedup::{DedupPlan, Sameness, SnapLength, WindowWidth};
use flowsieve::trace::{Capture, InputFormat};
use libtest_mimic::Completion;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) fn by_frame_keeps_what_editcap_keeps(traces: &Path) -> Completion {
    if Command::new("editcap").arg("--version").output().is_err() {
        return Completion::ignored_with("there is no editcap (Debian: wireshark-common)");
    }
    let folder = tempfile::tempdir().unwrap();
    let mut captures = Vec::new();
    for group in ["backbone", "campus", "ddos", "dns", "encap", "formats"] {
        let mut paths: Vec<PathBuf> =
            fs::read_dir(traces.join(group)).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        let readable = paths.into_iter().filter(|path| {
            Capture::open(path, InputFormat::Auto)
                .is_ok_and(|capture| capture.container().starts_with("pcap"))
        });
        captures.extend(readable.take(6));
    }
    let (mut compared, mut dropped) = (0, 0);
    for path in captures {
        let theirs = folder.path().join("theirs.pcapng");
        let editcap = Command::new("editcap").arg("-d").args([&path, &theirs]).output().unwrap();
        if !editcap.status.success() {
            continue;
        }
        let plan = plan(std::slice::from_ref(&path), Sameness::Frame, WindowWidth::Packets(5));
        let (summary, kept, _) = run(&plan, folder.path());
        let bytes = |frames: Vec<Frame>| -> Vec<Vec<u8>> {
            frames.into_iter().map(|(_, bytes)| bytes).collect()
        };
        assert_eq!(bytes(kept), bytes(frames(&theirs)), "{}", path.display());
        compared += 1;
        dropped += summary.totals.dropped();
    }
    eprintln!("{compared} captures compared with editcap, {dropped} frames dropped");
    assert!(compared >= 10 && dropped > 0, "{compared} captures, {dropped} frames dropped");
    Completion::Completed
}

/// tshark reads the same headers in packets that were cut after them. Headers in tunnels and ICMP
/// errors are cut with the payload, so packets with several IP headers are left out.
pub(crate) fn headers_that_are_left_read_the_same_in_tshark(traces: &Path) -> Completion {
    const FIELDS: &str = "frame.time_epoch frame.len eth.src eth.dst vlan.id arp.src.proto_ipv4 arp.dst.hw_mac ip.src \
        ip.dst ip.id ip.ttl ip.checksum ipv6.src ipv6.dst ipv6.hlim tcp.srcport tcp.dstport tcp.seq_raw tcp.flags \
        tcp.checksum udp.srcport udp.dstport udp.length udp.checksum icmp.type icmpv6.type";
    if Command::new("tshark").arg("--version").output().is_err() {
        return Completion::ignored_with("there is no tshark");
    }
    let rows = |path: &Path| -> Vec<String> {
        let mut tshark = Command::new("tshark");
        tshark.args(["-n", "-T", "fields", "-r"]).arg(path);
        for reassembly in ["ip.defragment", "ipv6.defragment", "tcp.desegment_tcp_streams"] {
            tshark.args(["-o", &format!("{reassembly}:FALSE")]);
        }
        for field in FIELDS.split_whitespace() {
            tshark.args(["-e", field]);
        }
        let output = tshark.output().unwrap();
        assert!(output.status.success(), "{}", path.display());
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(str::to_owned).collect()
    };
    let folder = tempfile::tempdir().unwrap();
    let cut = folder.path().join("kept.pcapng");
    let mut compared = 0;
    for name in [
        "campus/ndpi-alexa-app.pcapng",
        "campus/ndpi-telegram.pcap",
        "campus/pcapplusplus-many-protocols.pcap",
        "campus/zeek-dhcp__dhcp_flood.pcap",
        "encap/pcapplusplus-ip6_fragments.pcap",
        "encap/pcapplusplus-ipv6_options.pcap",
    ] {
        let path = traces.join(name);
        let plan = DedupPlan {
            snap_length: Some(SnapLength::Headers),
            ..plan(std::slice::from_ref(&path), Sameness::Frame, WindowWidth::Packets(1))
        };
        run(&plan, folder.path());
        let (old, new) = (rows(&path), rows(&cut));
        assert_eq!(old.len(), new.len(), "{name}");
        for (old, new) in old.iter().zip(&new).filter(|(old, _)| !old.contains(',')) {
            assert_eq!(old, new, "{name}");
            compared += 1;
        }
    }
    eprintln!("{compared} packets compared with tshark");
    assert!(compared > 5000);
    Completion::Completed
}
