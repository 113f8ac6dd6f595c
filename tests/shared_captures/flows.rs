//! Compares sums over flows with tshark.

use crate::library::flows::{flows, plan};
use libtest_mimic::Completion;
use std::path::Path;
use std::process::Command;

/// Shared captures of plain traffic, whose sums tshark computes.
const PLAIN: [&str; 12] = [
    "campus/ndpi-android.pcap",
    "campus/ndpi-dnscrypt-v1-and-resolver-pings.pcap",
    "campus/ndpi-sites.pcapng",
    "campus/ndpi-teams-full.pcap",
    "campus/ndpi-viber_mobile.pcap",
    "campus/ndpi-zone-transfer.pcapng",
    "campus/ndpi-zoom.pcap",
    "campus/netml-anomaly.pcapng",
    "campus/netml-demo.pcapng",
    "campus/pcapplusplus-4KHttpRequests.pcap",
    "campus/suricata-tls__tls-subjectaltname__input.pcap",
    "campus/zeek-dce-rpc__mapi.pcap",
];

pub(crate) fn packets_and_bytes_are_those_of_tshark(folder: &Path) -> Completion {
    for name in PLAIN {
        let path = folder.join(name);
        let output = Command::new("tshark")
            .args(["-T", "fields", "-E", "occurrence=f", "-e", "ip.len", "-e", "ipv6.plen"])
            .arg("-r")
            .arg(&path)
            .output();
        let Ok(output) = output else { return Completion::ignored_with("there is no tshark") };
        let text = String::from_utf8(output.stdout).expect("numbers");
        let (mut packets, mut bytes) = (0_u64, 0_u64);
        for line in text.lines() {
            let mut cells = line.split('\t');
            let v4: Option<u64> = cells.next().and_then(|cell| cell.parse().ok());
            let v6: Option<u64> = cells.next().and_then(|cell| cell.parse().ok());
            if let Some(length) = v4.or(v6.map(|payload| payload + 40)) {
                packets += 1;
                bytes += length;
            }
        }
        let (_, summary) = flows(&plan(&path));
        assert!(packets > 0, "{name}");
        assert_eq!((summary.totals.ip_packets, summary.totals.bytes), (packets, bytes), "{name}");
    }
    Completion::Completed
}
