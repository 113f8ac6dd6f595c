//! The limit of the machine: how fast bare loops go through a capture, a file and memory.
//!
//!     limit pairs CAPTURE [THREADS]   host pairs of each second, in an exact set
//!     limit headers CAPTURE [THREADS] record headers and addresses, added up
//!     limit read CAPTURE [THREADS]    every byte read, and none looked at
//!     limit unpack CAPTURE            the decompressor alone, as flowsieve runs it
//!     limit copy [THREADS]            memory copied from a buffer beyond the caches to another
//!
//! What flowsieve does beyond this loop is what a program for real captures needs: this one takes a
//! little-endian pcap of microseconds with Ethernet, VLAN tags, IPv4 and IPv6 as they are in the
//! inputs of `scripts/bench`, and knows no errors.

#![allow(missing_docs, reason = "a program")]
#![allow(clippy::inline_always, reason = "the loop over records is one loop")]

use flowsieve::trace::decompressed;
use std::env;
use std::fs::File;
use std::hint::black_box;
use std::io::{Read, Seek, SeekFrom};
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

/// Bytes read at a time: they stay in the second-level cache while they are looked at.
const BLOCK: usize = 256 << 10;

/// Bytes of a buffer that is copied: far more than caches hold.
const COPIED: usize = 256 << 20;

/// How often it is copied.
const COPIES: usize = 8;

/// Keys whose places in the set are touched before the first of them is put there, so that the
/// processor fetches them at the same time.
const AHEAD: usize = 64;

const FILE_HEADER: u64 = 24;
const RECORD_HEADER: usize = 16;

fn main() {
    let words: Vec<String> = env::args().skip(1).collect();
    let [what, rest @ ..] = &words[..] else {
        panic!(
            "limit pairs|headers|read CAPTURE [THREADS], limit unpack CAPTURE, or limit copy [THREADS]"
        );
    };
    let number = |text: Option<&String>| text.map_or(1, |text| text.parse().expect("a number"));
    if what == "copy" {
        let threads = number(rest.first());
        println!("copy: {:.2} GB/s read and as many written", copy(threads));
        return;
    }
    let path = rest.first().expect("limit needs the path of a capture");
    let bytes =
        File::open(path).and_then(|file| file.metadata()).expect("the capture can be read").len();
    let threads = number(rest.get(1));
    if what == "unpack" {
        let begin = Instant::now();
        let bytes = unpack(path);
        println!("unpack: {bytes} bytes, {:.3} s", begin.elapsed().as_secs_f64());
        return;
    }
    let parts = parts(path, bytes, threads);
    let (mut packets, mut answer) = (0, 0);
    let begin = Instant::now();
    thread::scope(|scope| {
        let workers: Vec<_> = parts
            .windows(2)
            .map(|part| {
                let (from, to) = (part[0], part[1]);
                scope.spawn(move || match what.as_str() {
                    "pairs" => pairs(path, from, to),
                    "headers" => headers(path, from, to),
                    "read" => read(path, from, to),
                    _ => panic!("limit knows pairs, headers, read, unpack and copy"),
                })
            })
            .collect();
        for worker in workers {
            let (its_packets, its_answer) = worker.join().expect("it does not panic");
            packets += its_packets;
            answer += its_answer;
        }
    });
    let seconds = begin.elapsed().as_secs_f64();
    let rate = bytes as f64 / seconds / 1e9;
    let each = seconds / packets.max(1) as f64 * 1e9;
    println!(
        "{what}: {packets} packets, answer {answer}, {seconds:.3} s, {each:.1} ns a packet, {rate:.2} GB/s"
    );
}

/// Billions of bytes a second that threads copy together, when their buffers have memory.
fn copy(threads: usize) -> f64 {
    let ready = Barrier::new(threads + 1);
    let begin = thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let (from, mut to) = (vec![1_u8; COPIED], vec![2_u8; COPIED]);
                ready.wait();
                for _ in 0..COPIES {
                    to.copy_from_slice(black_box(&from));
                    black_box(&mut to);
                }
            });
        }
        ready.wait();
        Instant::now()
    });
    (threads * COPIES * COPIED) as f64 / begin.elapsed().as_secs_f64() / 1e9
}

/// Where each thread begins, and the end: at the begin of the file, and where a second begins.
pub(crate) fn parts(path: &str, bytes: u64, threads: usize) -> Vec<u64> {
    let mut parts = vec![FILE_HEADER];
    for number in 1..threads as u64 {
        let from = resync(path, bytes / threads as u64 * number);
        let (mut first, mut found) = (None, bytes);
        records(path, from, bytes, |offset, second, _| {
            let same = *first.get_or_insert(second) == second;
            if !same {
                found = offset;
            }
            same
        });
        parts.push(found);
    }
    parts.push(bytes);
    parts
}

/// The first place from here on behind which 16 sane record headers follow each other.
fn resync(path: &str, from: u64) -> u64 {
    let mut block = vec![0; 4 * BLOCK];
    let length = open_at(path, from).read(&mut block).expect("the capture can be read");
    let block = &block[..length];
    let is_boundary = |&start: &usize| {
        let mut at = start;
        (0..16).all(|_| {
            let Some([fraction, captured, length]) =
                block.get(at + 4..at + RECORD_HEADER).map(words)
            else {
                return false;
            };
            at += RECORD_HEADER + captured as usize;
            fraction < 1_000_000
                && (14..=65_535).contains(&captured)
                && (captured..=65_535).contains(&length)
        })
    };
    let place = (0..length).find(is_boundary).expect("records are shorter than this");
    from + place as u64
}

fn words(bytes: &[u8]) -> [u32; 3] {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    [word(0), word(4), word(8)]
}

fn open_at(path: &str, from: u64) -> File {
    let mut file = File::open(path).expect("the capture can be read");
    file.seek(SeekFrom::Start(from)).expect("it is a file");
    file
}

/// Hands every record of a part of the file to `take`, until that says no: its offset, its second
/// and its frame.
#[inline(always)]
fn records(path: &str, from: u64, to: u64, mut take: impl FnMut(u64, u32, &[u8]) -> bool) {
    let mut file = open_at(path, from).take(to - from);
    let mut block = vec![0; BLOCK];
    let (mut have, mut base) = (0, from);
    loop {
        let got = file.read(&mut block[have..]).expect("the capture can be read");
        if got == 0 {
            return;
        }
        have += got;
        let mut at = 0;
        while let Some(header) = block[at..have].first_chunk::<RECORD_HEADER>() {
            let second = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
            let captured =
                u32::from_le_bytes([header[8], header[9], header[10], header[11]]) as usize;
            let Some(frame) = block[at + RECORD_HEADER..have].get(..captured) else { break };
            if !take(base + at as u64, second, frame) {
                return;
            }
            at += RECORD_HEADER + captured;
        }
        block.copy_within(at..have, 0);
        have -= at;
        base += at as u64;
    }
}

fn read(path: &str, from: u64, to: u64) -> (u64, u64) {
    (0, all_of(open_at(path, from).take(to - from)))
}

fn unpack(path: &str) -> u64 {
    all_of(decompressed(File::open(path).expect("the capture can be read")))
}

/// Reads to the end: how many bytes there were.
fn all_of(mut source: impl Read) -> u64 {
    let mut block = vec![0; BLOCK];
    let mut bytes = 0;
    loop {
        match source.read(&mut block).expect("the capture can be read") as u64 {
            0 => return bytes,
            got => bytes += got,
        }
    }
}

/// The addresses of a frame: one word of IPv4, four of IPv6.
enum Pair {
    Four(u64),
    Six([u64; 4]),
    None,
}

#[inline(always)]
fn pair(frame: &[u8]) -> Pair {
    let mut at = 12;
    while frame.get(at..at + 2) == Some(&[0x81, 0]) {
        at += 4;
    }
    let Some((kind, packet)) = frame.get(at..).and_then(<[u8]>::split_first_chunk) else {
        return Pair::None;
    };
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    match (kind, packet) {
        ([8, 0], packet) if packet.len() >= 20 => Pair::Four(word(&packet[12..20])),
        ([0x86, 0xdd], packet) if packet.len() >= 40 => {
            let at = |start: usize| word(&packet[start..start + 8]);
            Pair::Six([at(8), at(16), at(24), at(32)])
        }
        _ => Pair::None,
    }
}

fn headers(path: &str, from: u64, to: u64) -> (u64, u64) {
    let (mut packets, mut sum) = (0, 0_u64);
    records(path, from, to, |_, _, frame| {
        packets += 1;
        sum = sum.wrapping_add(
            match pair(frame) {
                Pair::Four(word) => word,
                Pair::Six(words) => words.iter().fold(0, |sum, &word| sum ^ word),
                Pair::None => 0,
            } >> 32,
        );
        true
    });
    (packets, sum)
}

/// Packets in a part of a capture, and the distinct pairs of each second, added up.
pub(crate) fn pairs(path: &str, from: u64, to: u64) -> (u64, u64) {
    let (mut packets, mut distinct, mut now) = (0, 0, 0);
    let (mut four, mut six) = (Set::new(), Set::new());
    records(path, from, to, |_, second, frame| {
        packets += 1;
        if second != now {
            distinct += four.finish() + six.finish();
            now = second;
        }
        match pair(frame) {
            Pair::Four(word) => four.put([word]),
            Pair::Six(words) => six.put(words),
            Pair::None => {}
        }
        true
    });
    (packets, distinct + four.finish() + six.finish())
}

/// An exact set of keys, with open addressing; the key of zeros is an empty place.
struct Set<const W: usize> {
    places: Vec<[u64; W]>,
    count: usize,
    waiting: Vec<(usize, [u64; W])>,
}

impl<const W: usize> Set<W> {
    fn new() -> Self {
        Self { places: vec![[0; W]; 1 << 14], count: 0, waiting: Vec::with_capacity(AHEAD) }
    }

    #[inline(always)]
    fn put(&mut self, key: [u64; W]) {
        self.waiting.push((hash(&key), key));
        if self.waiting.len() == AHEAD {
            self.put_waiting();
        }
    }

    fn put_waiting(&mut self) {
        let mask = self.places.len() - 1;
        let touched = self.waiting.iter().map(|&(hash, _)| self.places[hash & mask][0]);
        black_box(touched.fold(0, |all, word| all ^ word));
        for number in 0..self.waiting.len() {
            if 2 * self.count >= self.places.len() {
                self.grow();
            }
            let (hash, key) = self.waiting[number];
            self.count += usize::from(insert(&mut self.places, hash, key));
        }
        self.waiting.clear();
    }

    #[cold]
    fn grow(&mut self) {
        let larger = vec![[0; W]; 2 * self.places.len()];
        for key in std::mem::replace(&mut self.places, larger) {
            if key != [0; W] {
                insert(&mut self.places, hash(&key), key);
            }
        }
    }

    /// How many keys there are; none from now on.
    fn finish(&mut self) -> u64 {
        self.put_waiting();
        self.places.fill([0; W]);
        std::mem::take(&mut self.count) as u64
    }
}

/// Whether the key is new.
#[inline(always)]
fn insert<const W: usize>(places: &mut [[u64; W]], hash: usize, key: [u64; W]) -> bool {
    let mask = places.len() - 1;
    let mut at = hash & mask;
    loop {
        let place = &mut places[at];
        if *place == key {
            return false;
        }
        if *place == [0; W] {
            *place = key;
            return true;
        }
        at = (at + 1) & mask;
    }
}

#[inline(always)]
fn hash<const W: usize>(key: &[u64; W]) -> usize {
    key.iter().fold(0x9e37_79b9_7f4a_7c15, |hash: u64, word| {
        let product = u128::from(hash ^ word) * 0xbf58_476d_1ce4_e5b9;
        product as u64 ^ (product >> 64) as u64
    }) as usize
}
