//! Small captures in every container, with the places of record ends and of lengths. They are built
//! here byte by byte, without the code under test.

use flowsieve::generate::{GenerateKind, GeneratePlan, generate};
use flowsieve::trace::InputFormat;
use std::io::Write;

/// A capture and the places of its parts.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) name: &'static str,
    pub(crate) bytes: Vec<u8>,
    pub(crate) format: InputFormat,
    /// End of the file header, or 0 if the format has none.
    pub(crate) header: usize,
    /// End of each packet's record.
    pub(crate) ends: Vec<usize>,
    /// Ends of blocks without packets; errors may be there, too.
    pub(crate) other_ends: Vec<usize>,
    /// Places of lengths, types and counts.
    pub(crate) fields: Vec<usize>,
    /// True for text, which has no lengths, and whose last line may be short.
    pub(crate) is_text: bool,
    /// True if the bytes are compressed, so that record ends are unknown.
    pub(crate) is_compressed: bool,
}

impl Sample {
    fn new(name: &'static str) -> Self {
        Self {
            name,
            bytes: Vec::new(),
            format: InputFormat::Auto,
            header: 0,
            ends: Vec::new(),
            other_ends: Vec::new(),
            fields: Vec::new(),
            is_text: false,
            is_compressed: false,
        }
    }

    /// Returns the number of packets whose records end at `at` or before.
    pub(crate) fn whole_before(&self, at: usize) -> usize {
        self.ends.partition_point(|&end| end <= at)
    }

    /// Returns the last end of a record, block or header at `at` or before.
    pub(crate) fn last_end(&self, at: usize) -> usize {
        let ends = self.ends.iter().chain(&self.other_ends);
        ends.copied().filter(|&end| end <= at).max().unwrap_or(0).max(if at >= self.header {
            self.header
        } else {
            0
        })
    }
}

/// Returns the frames of a generated capture, found by the record headers of the format.
fn generated(kind: GenerateKind, packets: u64, snaplen: u32) -> Vec<Vec<u8>> {
    let mut capture = Vec::new();
    let plan = GeneratePlan {
        snaplen,
        ipv6_percent: 30,
        vlan_percent: 30,
        dns_percent: if kind == GenerateKind::Dns { 0 } else { 20 },
        ..GeneratePlan::new(kind, packets)
    };
    generate(&plan, &mut capture).unwrap();
    let mut at = 24;
    let mut frames = Vec::new();
    while at < capture.len() {
        let length = u32::from_le_bytes(capture[at + 8..at + 12].try_into().unwrap()) as usize;
        frames.push(capture[at + 16..at + 16 + length].to_vec());
        at += 16 + length;
    }
    frames
}

/// An IPv4 packet.
pub(crate) fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend(((20 + payload.len()) as u16).to_be_bytes());
    packet.extend([0, 7, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend_from_slice(payload);
    packet
}

/// A UDP datagram.
pub(crate) fn udp(source: u16, destination: u16, payload: &[u8]) -> Vec<u8> {
    let mut datagram = Vec::new();
    datagram.extend(source.to_be_bytes());
    datagram.extend(destination.to_be_bytes());
    datagram.extend(((8 + payload.len()) as u16).to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend_from_slice(payload);
    datagram
}

/// An Ethernet frame.
pub(crate) fn ethernet(ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    frame.extend(ethertype.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// Returns frames that are rare in traffic: tunnels, stacked tags, extension headers, DNS over TCP,
/// names with pointers.
fn rare_frames() -> Vec<Vec<u8>> {
    let question = b"\0\x07\x01\0\0\x01\0\0\0\0\0\0\x03www\x07example\0\0\x01\0\x01";
    let pointed =
        b"\0\x07\x81\x80\0\x01\0\0\0\0\0\0\x03www\xc0\x16\0\x01\0\x01\x07example\xc0\x1f\0";
    let inner = ipv4(17, &udp(5000, 53, question));
    let mut tcp = vec![0x30, 0x39, 0, 53, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x18, 1, 0, 0, 0, 0, 0];
    tcp.extend((question.len() as u16).to_be_bytes());
    tcp.extend_from_slice(question);
    tcp.extend((pointed.len() as u16).to_be_bytes());
    tcp.extend_from_slice(pointed);
    let mut ipv6 = vec![0x60, 0, 0, 0, 0, 72, 0, 64];
    ipv6.extend([0x20; 32]);
    ipv6.extend([43, 0, 1, 4, 0, 0, 0, 0]);
    ipv6.extend([60, 0, 0, 0, 0, 0, 0, 0]);
    ipv6.extend([44, 1, 1, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    ipv6.extend([51, 0, 0, 1, 0, 0, 0, 9]);
    ipv6.extend([17, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2]);
    ipv6.extend(udp(5353, 53, &question[..12]));
    let vxlan = [&[8, 0, 0, 0, 0, 0, 7, 0][..], &ethernet(0x0800, &inner)].concat();
    let geneve =
        [&[1, 0, 0x65, 0x58, 0, 0, 7, 0, 1, 2, 3, 0][..], &ethernet(0x0800, &inner)].concat();
    let gre = [&[0x30, 0, 8, 0, 0, 0, 0, 1, 0, 0, 0, 2][..], &inner].concat();
    let gtp = [&[0x32, 255, 0, 60, 0, 0, 0, 1, 0, 1, 0, 0x85, 1, 0, 9, 0][..], &inner].concat();
    let erspan = [
        &[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 0, 0, 1, 0, 0, 0, 0][..],
        &ethernet(0x0800, &inner),
    ]
    .concat();
    let mut tagged = Vec::new();
    for tag in 1..6_u8 {
        tagged.extend([0, tag, if tag == 5 { 8 } else { 0x81 }, 0]);
    }
    tagged.extend_from_slice(&inner);
    let mpls = [&[0, 1, 0, 64, 0, 2, 1, 64][..], &inner].concat();
    let pppoe = [&[0x11, 0, 0, 1, 0, 60, 0, 0x21][..], &inner].concat();
    vec![
        ethernet(0x0800, &ipv4(17, &udp(53, 5001, pointed))),
        ethernet(0x0800, &ipv4(6, &tcp)),
        ethernet(0x86dd, &ipv6),
        ethernet(0x0800, &ipv4(17, &udp(4789, 4789, &vxlan))),
        ethernet(0x0800, &ipv4(17, &udp(6081, 6081, &geneve))),
        ethernet(0x0800, &ipv4(47, &gre)),
        ethernet(0x0800, &ipv4(47, &erspan)),
        ethernet(0x0800, &ipv4(17, &udp(2152, 2152, &gtp))),
        ethernet(0x0800, &ipv4(4, &inner)),
        ethernet(0x8100, &tagged),
        ethernet(0x8847, &mpls),
        ethernet(0x8864, &pppoe),
        ethernet(34, &[&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0][..], &inner].concat()),
    ]
}

#[derive(Clone, Copy)]
struct Order(bool);

impl Order {
    fn word(self, value: u32) -> [u8; 4] {
        if self.0 { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    fn short(self, value: u16) -> [u8; 2] {
        if self.0 { value.to_be_bytes() } else { value.to_le_bytes() }
    }
}

fn pcap(
    name: &'static str,
    magic: u32,
    order: Order,
    extra: usize,
    link: u32,
    frames: &[Vec<u8>],
) -> Sample {
    let mut sample = Sample::new(name);
    let out = &mut sample.bytes;
    out.extend(order.word(magic));
    out.extend(order.short(2));
    out.extend(order.short(4));
    for word in [0, 0, 65_535, link] {
        out.extend(order.word(word));
    }
    sample.header = 24;
    sample.fields.extend([0, 4, 16, 20]);
    for (number, frame) in frames.iter().enumerate() {
        let at = out.len();
        sample.fields.extend([at, at + 4, at + 8, at + 12]);
        for word in [1_700_000_000, 1000 * number as u32, frame.len() as u32, frame.len() as u32] {
            out.extend(order.word(word));
        }
        out.resize(out.len() + extra, 0);
        sample.fields.extend([out.len() + 12, out.len() + 14, out.len() + 16, out.len() + 23]);
        out.extend_from_slice(frame);
        sample.ends.push(out.len());
    }
    sample
}

fn block(sample: &mut Sample, order: Order, kind: u32, body: &[u8], packet: bool) {
    let out = &mut sample.bytes;
    let at = out.len();
    let length = (12 + body.len().next_multiple_of(4)) as u32;
    out.extend(order.word(kind));
    out.extend(order.word(length));
    out.extend_from_slice(body);
    out.resize(at + length as usize - 4, 0);
    out.extend(order.word(length));
    let end = out.len();
    sample.fields.extend([at, at + 4, at + 8, at + 12, at + 16, at + 20, end - 4]);
    if packet {
        sample.ends.push(end);
    } else {
        sample.other_ends.push(end);
    }
}

fn pcapng_section(sample: &mut Sample, order: Order, frames: &[Vec<u8>]) {
    let section =
        [&order.word(0x1a2b_3c4d)[..], &order.short(1), &order.short(0), &[255; 8]].concat();
    block(sample, order, 0x0a0d_0d0a, &section, false);
    for (link, resolution) in [(1_u16, 9_u8), (101, 6), (113, 0x8a)] {
        let mut body = order.short(link).to_vec();
        body.extend([0, 0]);
        body.extend(order.word(0));
        body.extend(order.short(2));
        body.extend(order.short(4));
        body.extend(b"eth0");
        body.extend(order.short(9));
        body.extend(order.short(1));
        body.extend([resolution, 0, 0, 0]);
        body.extend(order.short(14));
        body.extend(order.short(8));
        body.extend([0; 8]);
        body.extend([0; 4]);
        block(sample, order, 1, &body, false);
    }
    for (number, frame) in frames.iter().enumerate() {
        let length = order.word(frame.len() as u32);
        match number % 4 {
            3 => block(sample, order, 3, &[&length[..], frame].concat(), true),
            kind => {
                let interface = match kind {
                    2 => [order.short(0), order.short(9)].concat(),
                    _ => order.word(kind as u32 % 2).to_vec(),
                };
                let mut body = interface;
                body.extend(order.word(0x17));
                body.extend(order.word(number as u32 * 5000));
                body.extend(length);
                body.extend(length);
                body.extend_from_slice(frame);
                body.resize(body.len().next_multiple_of(4), 0);
                body.extend(order.short(1));
                body.extend(order.short(5));
                body.extend(b"words\0\0\0");
                body.extend([0; 4]);
                block(sample, order, if kind == 2 { 2 } else { 6 }, &body, true);
            }
        }
        if number % 5 == 4 {
            // A name resolution block, and one of an unknown type.
            block(
                sample,
                order,
                4,
                &[0, 1, 0, 8, 10, 0, 0, 1, b'a', b'b', b'c', 0, 0, 0, 0, 0],
                false,
            );
            block(sample, order, 0xbad, &[7; 33], false);
        }
    }
}

fn erf_record(sample: &mut Sample, number: usize, kind: u8, payload: &[u8], framing: &[u8]) {
    let out = &mut sample.bytes;
    let at = out.len();
    let time = (1_700_000_000_u64 << 32) + ((number as u64) << 20);
    out.extend(time.to_le_bytes());
    out.extend([kind, 4]);
    out.extend(((16 + framing.len() + payload.len()) as u16).to_be_bytes());
    out.extend([0, 0]);
    out.extend((payload.len() as u16).to_be_bytes());
    out.extend_from_slice(framing);
    out.extend_from_slice(payload);
    sample.fields.extend([at + 4, at + 8, at + 10, at + 14, at + 16]);
    sample.ends.push(out.len());
}

fn erf(frames: &[Vec<u8>]) -> Sample {
    let mut sample = Sample::new("erf");
    for (number, frame) in frames.iter().enumerate() {
        match number % 3 {
            0 => erf_record(&mut sample, number, 2, frame, &[0, 0]),
            // A record with two extension headers.
            1 => erf_record(
                &mut sample,
                number,
                0x82,
                frame,
                &[0x83, 1, 2, 3, 4, 5, 6, 7, 4, 1, 2, 3, 4, 5, 6, 7, 0, 0],
            ),
            _ => erf_record(&mut sample, number, 22, &frame[14..], &[]),
        }
    }
    sample
}

fn tsh() -> Sample {
    let mut sample = Sample { format: InputFormat::Tsh, ..Sample::new("tsh") };
    for number in 0..12_u8 {
        let packet = ipv4(6, &[0x30, number, 0, 80, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 1, 0]);
        sample.bytes.extend([0x65, 0, 0, number, 1, 0, 1, number]);
        sample.bytes.extend_from_slice(&packet);
        sample.ends.push(sample.bytes.len());
    }
    sample
}

fn text(name: &'static str, lines: &[&str], header_lines: usize) -> Sample {
    let mut sample = Sample { is_text: true, ..Sample::new(name) };
    for (number, line) in lines.iter().enumerate() {
        sample.bytes.extend_from_slice(line.as_bytes());
        sample.bytes.push(b'\n');
        if number < header_lines {
            sample.header = sample.bytes.len();
        } else {
            sample.ends.push(sample.bytes.len());
        }
    }
    sample
}

fn logs() -> Vec<Sample> {
    vec![
        text(
            "zeek-tsv",
            &[
                "#separator \\x09",
                "#set_separator\t,",
                "#empty_field\t(empty)",
                "#unset_field\t-",
                "#path\tdns",
                "#fields\tts\tuid\tid.orig_h\tid.orig_p\tid.resp_h\tid.resp_p\tproto\tquery",
                "#types\ttime\tstring\taddr\tport\taddr\tport\tenum\tstring",
                "1700000000.000001\tCa\t10.0.0.1\t5353\t10.0.0.53\t53\tudp\twww.example.com",
                "1700000001.5\tCb\t2001:db8::1\t5353\t2001:db8::53\t53\tudp\ta.b.c.example",
                "1700000002\tCc\t10.0.0.1\t5354\t10.0.0.53\t53\ttcp\t-",
                "1700000003.25\tCd\t10.0.0.2\t5355\t10.0.0.53\t53\tudp\t\\x2aweird\\x5c.example",
            ],
            7,
        ),
        text(
            "zeek-json",
            &[
                r#"{"ts":1700000000.000001,"uid":"Ca","id.orig_h":"10.0.0.1","id.orig_p":5353,"id.resp_h":"10.0.0.53","id.resp_p":53,"proto":"udp","query":"www.example.com"}"#,
                r#"{"ts":1700000001.5,"id.orig_h":"2001:db8::1","id.orig_p":5353,"id.resp_h":"2001:db8::53","id.resp_p":53,"proto":"udp","query":"a\u00e9.example"}"#,
                r#"{"ts":"2023-11-14T22:13:22Z","id.orig_h":"10.0.0.1","id.resp_h":"10.0.0.53","proto":"tcp"}"#,
            ],
            0,
        ),
        text(
            "dns-csv",
            &[
                "ts,src,dst,qname,proto",
                "1700000000.5,10.0.0.1,10.0.0.53,www.example.com,udp",
                "1700000001,2001:db8::1,2001:db8::53,\"quoted.example\",udp",
                "1700000002,10.0.0.1,10.0.0.53,mail.example,tcp",
            ],
            1,
        ),
    ]
}

/// Encodes a field of Protocol Buffers: a number, or bytes with their length, which is below
/// 16,384.
fn protobuf(number: u8, value: Result<u64, &[u8]>) -> Vec<u8> {
    let varint = |mut value: u64| {
        let mut out = Vec::new();
        while value >= 0x80 {
            out.push(value as u8 | 0x80);
            value >>= 7;
        }
        out.push(value as u8);
        out
    };
    match value {
        Ok(value) => [vec![number << 3], varint(value)].concat(),
        Err(bytes) => [vec![number << 3 | 2], varint(bytes.len() as u64), bytes.to_vec()].concat(),
    }
}

/// Returns dnstap messages of every type and both address families, some without optional fields.
fn dnstap() -> Sample {
    let mut sample = Sample::new("dnstap");
    let content = b"protobuf:dnstap.Dnstap";
    sample.bytes.extend([0, 0, 0, 0, 0, 0, 0, 12 + content.len() as u8]);
    sample.bytes.extend([0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, content.len() as u8]);
    sample.bytes.extend_from_slice(content);
    sample.header = sample.bytes.len();
    for number in 1..=14_u8 {
        let name: &[u8] =
            if number % 3 == 0 { b"\x03WwW\x07example\x03com\0" } else { b"\x04mail\x07example\0" };
        let qr = if number % 2 == 0 { 0x80 } else { 1 };
        let head = [0, number, qr, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        let dns = [&head[..], name, &[0, 1, 0, 1]].concat();
        let addresses = if number % 4 == 0 {
            [vec![0x20; 16], vec![0xfe; 16]]
        } else {
            [vec![192, 0, 2, number], vec![192, 0, 2, 53]]
        };
        let times = if number % 2 == 0 { [12, 13] } else { [8, 9] };
        let mut fields = vec![
            protobuf(1, Ok(u64::from(number))),
            protobuf(2, Ok(if number % 4 == 0 { 2 } else { 1 })),
            protobuf(3, Ok(u64::from(number % 7) + 1)),
            protobuf(4, Err(&addresses[0])),
            protobuf(5, Err(&addresses[1])),
            protobuf(6, Ok(40_000 + u64::from(number))),
            protobuf(7, Ok(53)),
            protobuf(times[0], Ok(1_700_000_000)),
            [&[times[1] << 3 | 5][..], &[number, 0, 0, 0]].concat(),
            protobuf(if number % 2 == 0 { 14 } else { 10 }, Err(&dns)),
        ];
        if number == 5 {
            fields.remove(4);
        }
        let message =
            [protobuf(1, Err(b"server")), protobuf(14, Err(&fields.concat())), protobuf(15, Ok(1))]
                .concat();
        let at = sample.bytes.len();
        // The lengths of the frame and of its first field, and the first fields of the message.
        sample.fields.extend([at, at + 5, at + 13, at + 15, at + 21]);
        sample.bytes.extend((message.len() as u32).to_be_bytes());
        sample.bytes.extend(message);
        sample.ends.push(sample.bytes.len());
    }
    sample.bytes.extend([0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 3]);
    sample.other_ends.push(sample.bytes.len());
    sample
}

/// Returns queries and responses as C-DNS, in two blocks. This is not part of [`all`], since a file
/// that ends between two queries is cut, too.
pub(crate) fn cdns() -> Sample {
    let item = |major: u8, length: usize, inside: Vec<u8>| {
        let head = match length {
            0..24 => vec![major << 5 | length as u8],
            _ => vec![
                major << 5 | 0x1a,
                (length >> 24) as u8,
                (length >> 16) as u8,
                (length >> 8) as u8,
                length as u8,
            ],
        };
        [head, inside].concat()
    };
    let number = |value: usize| item(0, value, Vec::new());
    let string = |bytes: &[u8]| item(2, bytes.len(), bytes.to_vec());
    let array = |items: &[Vec<u8>]| item(4, items.len(), items.concat());
    let map = |pairs: &[(usize, Vec<u8>)]| {
        let inside = pairs.iter().map(|(key, value)| [number(*key), value.clone()].concat());
        item(5, pairs.len(), inside.collect::<Vec<_>>().concat())
    };
    let exchange = |offset: usize| {
        map(&[
            (0, number(offset)),
            (1, number(offset % 2)),
            (2, number(40_000 + offset)),
            (4, number(offset % 2)),
            (6, number(7)),
            (7, number(offset % 2)),
        ])
    };
    let signature = |server: usize, transport: usize, flags: usize| {
        map(&[(0, number(server)), (1, number(53)), (2, number(transport)), (4, number(flags))])
    };
    let addresses = [&[192, 0, 2, 1][..], &[0x20; 16], &[192, 0, 2, 53]].map(string);
    let names = [&b"\x03www\x07example\0"[..], b"\0"].map(string);
    let tables = map(&[
        (0, array(&addresses)),
        (2, array(&names)),
        (3, array(&[signature(2, 0, 3), signature(1, 3, 1)])),
    ]);
    let start = array(&[number(1_700_000_000), number(5)]);
    let block = map(&[
        (0, map(&[(0, start), (1, number(0))])),
        (2, tables),
        (3, array(&[1, 2, 3, 4].map(exchange))),
    ]);
    let parameters = map(&[(0, map(&[(0, number(1000))]))]);
    let preamble = map(&[(0, number(1)), (1, number(0)), (3, array(&[parameters]))]);
    let mut sample = Sample::new("cdns");
    let begin = [&[0x83, 0x65][..], b"C-DNS", &preamble, &[0x9f]].concat();
    sample.header = begin.len();
    sample.bytes = [&begin[..], &block, &block, &[0xff]].concat();
    // Lengths are everywhere in CBOR.
    sample.fields = (0..sample.bytes.len()).step_by(3).collect();
    sample
}

/// Returns logs of flows.
fn flow_logs() -> Vec<Sample> {
    vec![
        text(
            "zeek-conn",
            &[
                "#separator \\x09",
                "#unset_field\t-",
                "#path\tconn",
                "#fields\tts\tid.orig_h\tid.orig_p\tid.resp_h\tid.resp_p\tproto\tduration\tconn_state\torig_pkts\torig_ip_bytes\tresp_pkts\tresp_ip_bytes",
                "1700000000.000001\t10.0.0.1\t5353\t10.0.0.53\t53\tudp\t0.25\tSF\t1\t60\t1\t120",
                "1700000001.5\t2001:db8::1\t128\t2001:db8::53\t129\ticmp\t-\tOTH\t1\t64\t0\t0",
                "1700000002\t10.0.0.1\t5354\t10.0.0.53\t80\ttcp\t9.5\tS0\t-\t-\t-\t-",
            ],
            4,
        ),
        text(
            "zeek-conn-json",
            &[
                r#"{"ts":1700000000.000001,"id.orig_h":"10.0.0.1","id.orig_p":5353,"id.resp_h":"10.0.0.53","id.resp_p":53,"proto":"udp","duration":0.25,"conn_state":"SF","orig_pkts":1,"resp_pkts":1,"orig_ip_bytes":60,"resp_ip_bytes":120}"#,
                r#"{"ts":1700000001.5,"id.orig_h":"2001:db8::1","id.orig_p":1,"id.resp_h":"2001:db8::53","id.resp_p":2,"proto":"tcp","conn_state":"S0"}"#,
            ],
            0,
        ),
        text(
            "eve",
            &[
                r#"{"timestamp":"2023-11-14T22:13:20.500000+0000","event_type":"flow","src_ip":"10.0.0.1","src_port":1,"dest_ip":"10.0.0.53","dest_port":80,"proto":"TCP","flow":{"pkts_toserver":3,"pkts_toclient":2,"bytes_toserver":180,"bytes_toclient":90,"start":"2023-11-14T22:13:20.000000+0000","end":"2023-11-14T22:13:21.500000+0000"},"tcp":{"tcp_flags_ts":"1b","tcp_flags_tc":"12"}}"#,
                r#"{"timestamp":"2023-11-14T22:13:21.000000+0000","event_type":"dns","src_ip":"10.0.0.1","src_port":5353,"dest_ip":"10.0.0.53","dest_port":53,"proto":"UDP","dns":{"type":"query","rrname":"www.example.com"}}"#,
                r#"{"timestamp":"2023-11-14T22:13:21.000000+0000","event_type":"dns","src_ip":"2001:db8::53","src_port":53,"dest_ip":"2001:db8::1","dest_port":5353,"proto":"UDP","dns":{"version":3,"type":"response","queries":[{"rrname":"a.example"}]}}"#,
            ],
            0,
        ),
        text(
            "flow-csv",
            &[
                "start_ns,start,end_ns,end,src,dst,src_port,dst_port,proto,packets_fwd,packets_rev,bytes_fwd,bytes_rev,tcp_flags_fwd,tcp_flags_rev,domain",
                "1700000000000000000,x,1700000001000000000,y,10.0.0.1,10.0.0.53,1,80,6,3,2,180,90,27,18,",
                "1700000000000000001,x,1700000001000000000,y,2001:db8::1,2001:db8::53,1,53,17,1,0,60,0,,,a.example",
            ],
            1,
        ),
        text(
            "nfdump-csv",
            &[
                "ts,te,td,sa,da,sp,dp,pr,flg,fwd,stos,ipkt,ibyt,opkt,obyt",
                "2023-11-14 22:13:20,2023-11-14 22:13:21,1.500,10.0.0.1,10.0.0.53,1,80,TCP,...AP.SF,0,0,3,180,2,90",
                "2023-11-14 22:13:20,2023-11-14 22:13:20,0.000,10.0.0.1,10.0.0.53,0,2048,ICMP,........,0,0,1,84,0,0",
            ],
            1,
        ),
    ]
}

/// Compresses with the codec of this name.
pub(crate) fn compress(codec: &str, bytes: &[u8]) -> Vec<u8> {
    match codec {
        "gzip" => {
            let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            out.write_all(bytes).unwrap();
            out.finish().unwrap()
        }
        "zstd" => zstd::encode_all(bytes, 1).unwrap(),
        "xz" => {
            let options = lzma_rust2::XzOptions::with_preset(0);
            let mut out = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
            out.write_all(bytes).unwrap();
            out.finish().unwrap()
        }
        "bzip2" => {
            let mut out = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
            out.write_all(bytes).unwrap();
            out.finish().unwrap()
        }
        "lz4" => {
            let mut out = lz4_flex::frame::FrameEncoder::new(Vec::new());
            out.write_all(bytes).unwrap();
            out.finish().unwrap()
        }
        other => panic!("{other} is no codec"),
    }
}

/// Returns the first `most` packets of a capture of this repository.
fn recorded(name: &'static str, file: &str, most: usize) -> Sample {
    let path = format!("{}/traces/{file}", env!("CARGO_MANIFEST_DIR"));
    let all = std::fs::read(path).unwrap();
    let mut sample = Sample { header: 24, ..Sample::new(name) };
    let mut at = 24;
    while sample.ends.len() < most && at < all.len() {
        sample.fields.extend([at + 8, at + 12, at + 28, at + 30]);
        at += 16 + u32::from_le_bytes(all[at + 8..at + 12].try_into().unwrap()) as usize;
        sample.ends.push(at);
    }
    sample.bytes = all[..at].to_vec();
    sample
}

/// Returns all samples.
pub(crate) fn all() -> Vec<Sample> {
    let little = Order(false);
    let big = Order(true);
    let traffic = generated(GenerateKind::Traffic, 16, 96);
    let dns = generated(GenerateKind::Dns, 12, 65_535);
    let rare = rare_frames();
    let raw: Vec<Vec<u8>> = rare.iter().map(|frame| frame[14..].to_vec()).collect();
    let mut erf_frames = Vec::new();
    for (number, frame) in rare.iter().enumerate() {
        let mut one = Sample::new("");
        erf_record(&mut one, number, 2, frame, &[0, 0]);
        erf_frames.push(one.bytes);
    }
    let mut samples = vec![
        pcap("pcap", 0xa1b2_c3d4, little, 0, 1, &traffic),
        pcap("pcap-dns", 0xa1b2_c3d4, little, 0, 1, &dns),
        pcap("pcap-rare", 0xa1b2_3c4d, little, 0, 1, &rare),
        pcap("pcap-big", 0xa1b2_c3d4, big, 0, 1, &traffic),
        pcap("pcap-modified", 0xa1b2_cd34, little, 8, 1, &traffic),
        pcap("pcap-raw", 0xa1b2_c3d4, little, 0, 101, &raw),
        pcap("pcap-erf", 0xa1b2_c3d4, little, 0, 197, &erf_frames),
        erf(&rare),
        tsh(),
    ];
    for (name, orders) in [("pcapng", vec![little]), ("pcapng-sections", vec![big, little, big])] {
        let mut sample = Sample::new(name);
        for order in orders {
            pcapng_section(&mut sample, order, &rare);
        }
        samples.push(sample);
    }
    samples.extend(logs());
    samples.extend(flow_logs());
    samples.push(dnstap());
    samples.push(recorded("recorded-dns", "netns-dns.pcap", 12));
    samples.push(recorded("recorded-web", "netns-web-loss.pcap", 12));
    for (name, codec, of) in [
        ("gzip", "gzip", 0),
        ("zstd", "zstd", 1),
        ("xz", "xz", 2),
        ("bzip2", "bzip2", 3),
        ("lz4", "lz4", 9),
        ("gzip-log", "gzip", 11),
    ] {
        let inner: &Sample = &samples[of];
        let bytes = compress(codec, &inner.bytes);
        samples.push(Sample { bytes, is_compressed: true, ..Sample::new(name) });
    }
    let halves = samples[0].bytes.split_at(samples[0].bytes.len() / 2);
    let bytes = [compress("gzip", halves.0), compress("gzip", halves.1)].concat();
    samples.push(Sample { bytes, is_compressed: true, ..Sample::new("gzip-members") });
    samples
}

/// Writes the samples for `scripts/fuzz`, which starts from them.
#[test]
fn samples_are_written_where_asked() {
    let samples = all();
    assert!(samples.len() > 20);
    let Some(folder) = std::env::var_os("FLOWSIEVE_WRITE_SEEDS") else { return };
    for sample in samples.into_iter().chain([cdns()]) {
        std::fs::write(std::path::Path::new(&folder).join(sample.name), &sample.bytes).unwrap();
    }
}
