//! Decompression bombs: gibibytes of zeros, and millions of members.
//!
//! `FLOWSIEVE_BOMB_GIB` makes them larger (`scripts/bombs` sets 10).

use super::Measured;
use super::source::{Repeated, Work, work};
use flowsieve::elements::ElementRule;
use std::io::{Cursor, Read, Write};
use std::thread;

fn gibibytes() -> u64 {
    std::env::var("FLOWSIEVE_BOMB_GIB").map_or(1, |text| text.parse().unwrap())
}

/// The writing end of a pipe in memory.
struct Pipe(std::sync::mpsc::SyncSender<Vec<u8>>);

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let gone = |_| std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        self.0.send(bytes.to_vec()).map_err(gone)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The reading end of the pipe.
struct Arriving(std::sync::mpsc::Receiver<Vec<u8>>, Cursor<Vec<u8>>);

impl Read for Arriving {
    fn read(&mut self, target: &mut [u8]) -> std::io::Result<usize> {
        loop {
            let count = self.1.read(target)?;
            if count > 0 {
                return Ok(count);
            }
            match self.0.recv() {
                Ok(bytes) => self.1 = Cursor::new(bytes),
                Err(_) => return Ok(0),
            }
        }
    }
}

/// Writes a pcapng section, and name resolution blocks of 1 GiB of zeros: these have no packets,
/// but all of them is read.
fn zeros(out: &mut dyn Write, blocks: u64) -> std::io::Result<()> {
    const BLOCK: u32 = 1 << 30;
    let zeros = vec![0; 1 << 20];
    out.write_all(&super::source::section())?;
    for _ in 0..blocks {
        out.write_all(&[4, 0, 0, 0])?;
        out.write_all(&BLOCK.to_le_bytes())?;
        for _ in 0..1023 {
            out.write_all(&zeros)?;
        }
        out.write_all(&zeros[12..])?;
        out.write_all(&BLOCK.to_le_bytes())?;
    }
    Ok(())
}

fn check(work: &Work, measured: &Measured, most: usize) {
    assert!(work.error.is_none(), "{:?}", work.error);
    assert_eq!(work.packets, 0);
    assert!(work.bytes > 1000);
    // Compressed bytes are read in pieces of at most 128 KiB.
    assert!(measured.peak_bytes() < most, "{} bytes", measured.peak_bytes());
}

#[test]
fn gibibytes_of_zeros_in_gzip_take_no_memory() {
    let measured = Measured::start();
    let (send, receive) = std::sync::mpsc::sync_channel(4);
    let writer = thread::spawn(move || {
        let mut out = flate2::write::GzEncoder::new(Pipe(send), flate2::Compression::fast());
        zeros(&mut out, gibibytes()).unwrap();
        out.finish().unwrap();
    });
    let done = work(Arriving(receive, Cursor::new(Vec::new())), ElementRule::default());
    writer.join().unwrap();
    check(&done, &measured, 8 << 20);
}

#[test]
fn gibibytes_of_zeros_in_zstd_take_a_window() {
    let measured = Measured::start();
    // RLE blocks of one repeated byte: four bytes decompress to 128 KiB.
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x58];
    let rle = |last: u32, length: u32| (last | 1 << 1 | length << 3).to_le_bytes()[..3].to_vec();
    let raw = |bytes: &[u8]| [&((bytes.len() as u32) << 3).to_le_bytes()[..3], bytes].concat();
    frame.extend(raw(&super::source::section()));
    for _ in 0..gibibytes() {
        frame.extend(raw(&[&[4, 0, 0, 0][..], &(1_u32 << 30).to_le_bytes()].concat()));
        for _ in 0..8191 {
            frame.extend(rle(0, 1 << 17));
            frame.push(0);
        }
        frame.extend(rle(0, (1 << 17) - 12));
        frame.push(0);
        frame.extend(raw(&(1_u32 << 30).to_le_bytes()));
    }
    frame.extend([1, 0, 0]);
    let done = work(Cursor::new(frame), ElementRule::default());
    check(&done, &measured, 24 << 20);
}

#[test]
fn zeros_in_xz_take_a_dictionary() {
    // The encoder takes seconds per gibibyte, so the default is a quarter of one.
    let measured = Measured::start();
    let (send, receive) = std::sync::mpsc::sync_channel(4);
    let writer = thread::spawn(move || {
        let options = lzma_rust2::XzOptions::with_preset(0);
        let mut out = lzma_rust2::XzWriter::new(Pipe(send), options).unwrap();
        out.write_all(&super::source::section()).unwrap();
        let block = super::source::block(4, &vec![0; 1 << 20]);
        for _ in 0..gibibytes() * 256 {
            out.write_all(&block).unwrap();
        }
        out.finish().unwrap();
    });
    let done = work(Arriving(receive, Cursor::new(Vec::new())), ElementRule::default());
    writer.join().unwrap();
    // The limit includes the memory of the encoder.
    check(&done, &measured, 64 << 20);
}

#[test]
fn a_million_members_of_gzip_take_no_memory() {
    let members = |bytes: &[u8]| {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    };
    let head = members(&super::source::pcap_header(101));
    let packet = super::source::record(1, &super::source::ipv4(1, 2, 17, &[0; 8]));
    let one = members(&packet);
    let measured = Measured::start();
    let done = work(Repeated::new(head, one.clone(), 1_000_000), ElementRule::default());
    assert!(done.error.is_none(), "{:?}", done.error);
    assert_eq!(done.packets, 1_000_000);
    assert!(done.calls <= 16 + done.bytes / 65_536, "{} calls", done.calls);
    assert!(measured.peak_bytes() < 8 << 20, "{} bytes", measured.peak_bytes());
    // Empty members.
    let empty = members(&[]);
    let done = work(Repeated::new(one, empty, 1_000_000), ElementRule::default());
    assert!(done.error.is_some(), "a record without a file header is no capture");
    assert!(measured.peak_bytes() < 8 << 20, "{} bytes", measured.peak_bytes());
}
