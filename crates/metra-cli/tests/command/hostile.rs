//! Files that harm whoever trusts them: 1,000 images cut off, damaged, lying about their size or their kind,
//! or inflating to gigabytes. None may end the command, and its memory stays within what its limits say.

use crate::folder::{Folder, text};
use metra::internal::Stream;
use metra_images::Picture;
use serde_json::Value;
use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

const FORMATS: [&str; 4] = ["png", "jpg", "bmp", "webp"];
/// Pixels that the command is told to take at most.
const PIXELS: u64 = 2_000_000;
/// What a decoder may hold for each, and twice, for two threads.
const ALLOWED: u64 = 2 * 32 * PIXELS;
/// Bytes to which a chunk of a few hundred kilobytes inflates.
const INFLATED: usize = 512 << 20;

#[test]
#[ignore = "slow: makes 1,000 files, some of which inflate to half a gigabyte"]
fn a_thousand_hostile_images_are_survived_in_bounded_memory() {
    let folder = Folder::new();
    let good = drawn(61, 47);
    fs::create_dir(folder.path("good")).unwrap();
    for number in 0..20 {
        good.save(folder.path(&format!("good/{number}.png")))
            .unwrap();
    }
    let (plain, done) = peak(&folder, "good");
    assert_eq!(done["images"], 20);

    let hostile = folder.path("hostile");
    fs::create_dir(&hostile).unwrap();
    let made = make(&hostile, &good);
    let (harmed, done) = peak(&folder, "hostile");
    let images = done["images"].as_u64().unwrap();
    let skipped = done["skipped"].as_array().unwrap();
    println!(
        "{made} files: {images} read, {} skipped; peak memory {} MB, of good images {} MB",
        skipped.len(),
        harmed >> 20,
        plain >> 20
    );
    assert!(made >= 1000);
    // The named pipe is passed over; folders named as images are no files.
    assert_eq!(images + skipped.len() as u64 + 1, made);
    assert!(
        images > 50 && skipped.len() > 500,
        "{images} {}",
        skipped.len()
    );
    for name in ["huge", "bomb_idat", "empty", "loop"] {
        let those = skipped
            .iter()
            .filter(|s| s["path"].as_str().unwrap().contains(name));
        assert!(those.count() > 0, "{name}");
    }
    assert!(
        harmed < plain + ALLOWED,
        "{harmed} bytes, {plain} of good images"
    );
}

/// The most memory that the command ever had over a folder, and what it said.
fn peak(folder: &Folder, images: &str) -> (u64, Value) {
    let line = format!("features stripes {images} --on-error skip --threads 2 --json -o f.parquet");
    let (out, error) = (folder.path("out.json"), folder.path("error.txt"));
    let mut child = folder
        .command(&line, &["--max-pixels", &PIXELS.to_string()])
        .stdout(Stdio::from(File::create(&out).unwrap()))
        .stderr(Stdio::from(File::create(&error).unwrap()))
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    // The kernel keeps the peak: only what comes after the last look is missed.
    let ended = loop {
        if let Ok(status) = fs::read_to_string(&status)
            && let Some(line) = status.lines().find(|line| line.starts_with("VmHWM:"))
        {
            let kilobytes = line.split_whitespace().nth(1).unwrap();
            most = most.max(kilobytes.parse::<u64>().unwrap() << 10);
        }
        if let Some(ended) = child.try_wait().unwrap() {
            break ended;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let error = text(&fs::read(error).unwrap());
    assert!(ended.success(), "{ended}: {error}");
    assert!(!error.contains("panicked"), "{error}");
    (
        most,
        serde_json::from_slice(&fs::read(out).unwrap()).unwrap(),
    )
}

fn drawn(width: u32, height: u32) -> Picture {
    let bytes = (0..3 * width * height).map(|place| ((place * place) >> 6) as u8);
    Picture::from_raw(width, height, bytes.collect()).unwrap()
}

/// Write the files; how many there are that are no folders.
fn make(folder: &Path, good: &Picture) -> u64 {
    let mut count = 0;
    let mut write = |name: String, bytes: &[u8]| {
        fs::write(folder.join(name), bytes).unwrap();
        count += 1;
    };
    let mut random = Stream::new(8, "hostile images", 0);
    for format in FORMATS {
        let path = folder.join(format!("whole.{format}"));
        good.save(&path).unwrap();
        let whole = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        for number in 0..110 {
            let end = random.below(whole.len() as u64) as usize;
            write(format!("cut_{number}.{format}"), &whole[..end]);
            let mut damaged = whole.clone();
            for _ in 0..=random.below(20) {
                let place = random.below(whole.len() as u64) as usize;
                damaged[place] = random.below(256) as u8;
            }
            write(format!("damaged_{number}.{format}"), &damaged);
        }
        for other in FORMATS {
            write(format!("is_{format}.{other}"), &whole);
        }
        for number in 0..20 {
            // The first bytes say what it is, and then there is noise.
            let noise = (0..4000).map(|_| random.below(256) as u8);
            let bytes: Vec<u8> = whole[..30].iter().copied().chain(noise).collect();
            write(format!("noise_{number}.{format}"), &bytes);
        }
        for (number, bytes) in huge(format, &whole).into_iter().enumerate() {
            write(format!("huge_{number}.{format}"), &bytes);
        }
        write(format!("empty.{format}"), b"");
    }
    for (name, bytes) in bombs() {
        write(format!("bomb_{name}.png"), &bytes);
    }
    for number in 0..30 {
        fs::create_dir(folder.join(format!("folder_{number}.png"))).unwrap();
    }
    for number in 0..5 {
        let (one, other) = (format!("loop_a{number}.png"), format!("loop_b{number}.png"));
        std::os::unix::fs::symlink(&one, folder.join(&other)).unwrap();
        std::os::unix::fs::symlink(&other, folder.join(&one)).unwrap();
        count += 2;
    }
    std::os::unix::fs::symlink(folder, folder.join("around")).unwrap();
    let pipe = std::process::Command::new("mkfifo")
        .arg(folder.join("pipe.png"))
        .status();
    assert!(pipe.unwrap().success());
    count + 1
}

/// An image whose header says that it has up to four billion pixels.
fn huge(format: &str, whole: &[u8]) -> Vec<Vec<u8>> {
    let at = |place: usize, bytes: &[u8]| {
        let mut changed = whole.to_vec();
        changed[place..place + bytes.len()].copy_from_slice(bytes);
        changed
    };
    match format {
        // The header's own sum must be right for its size to be believed.
        "png" => [
            (65_535u32, 65_535u32),
            (i32::MAX as u32, 1),
            (1, i32::MAX as u32),
            (1 << 20, 1 << 20),
        ]
        .map(|(width, height)| png(width, height, &[], &zeros(1 << 16)))
        .to_vec(),
        // Width and height are little-endian numbers of four bytes from byte 18 on.
        "bmp" => [
            [0xff, 0xff, 0xff, 0x7f],
            [0xff, 0xff, 0, 0],
            [0, 0, 0, 0x80],
        ]
        .map(|side| at(18, &[side, side].concat()))
        .to_vec(),
        // The frame's header: marker, length, precision, height and width.
        "jpg" => {
            let frame = whole
                .windows(2)
                .position(|two| two == [0xff, 0xc0])
                .unwrap();
            vec![
                at(frame + 5, &[0xff; 4]),
                at(frame + 5, &[0, 0, 0, 0]),
                at(frame + 5, &[0xff, 0xff, 0, 1]),
            ]
        }
        // Lossless: after the signature, 14 bits of width and 14 of height.
        _ => {
            let signature = whole.windows(4).position(|four| four == b"VP8L").unwrap();
            vec![at(signature + 9, &[0xff, 0xff, 0xff, 0x0f])]
        }
    }
}

/// PNG files with chunks that inflate to half a gigabyte.
fn bombs() -> Vec<(String, Vec<u8>)> {
    let inflating = zeros(INFLATED);
    let pixels = zeros(10 * (10 * 3 + 1));
    let with = |kind: &[u8; 4], head: &[u8]| {
        let chunk = chunk(kind, &[head, &inflating].concat());
        png(10, 10, &chunk, &pixels)
    };
    let mut files = Vec::new();
    for number in 0..3 {
        files.push((format!("text_{number}"), with(b"zTXt", b"Comment\0\0")));
        files.push((
            format!("words_{number}"),
            with(b"iTXt", b"Comment\0\x01\0\0\0"),
        ));
        files.push((format!("profile_{number}"), with(b"iCCP", b"colours\0\0")));
        // More pixels than the header says, and as many as it says, above the limit.
        files.push((format!("more_{number}"), png(10, 10, &[], &inflating)));
        files.push((
            format!("idat_{number}"),
            png(13_000, 13_000, &[], &inflating),
        ));
        // Many texts, each harmless.
        let many: Vec<u8> = (0..20_000).flat_map(|_| chunk(b"tEXt", b"a\0b")).collect();
        files.push((format!("many_{number}"), png(10, 10, &many, &pixels)));
    }
    files
}

/// A PNG of 8-bit RGB with these chunks before its pixels.
fn png(width: u32, height: u32, chunks: &[u8], pixels: &[u8]) -> Vec<u8> {
    let mut header = width.to_be_bytes().to_vec();
    header.extend(height.to_be_bytes());
    header.extend([8, 2, 0, 0, 0]);
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    file.extend(chunk(b"IHDR", &header));
    file.extend(chunks);
    file.extend(chunk(b"IDAT", pixels));
    file.extend(chunk(b"IEND", b""));
    file
}

fn chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let mut bytes = (data.len() as u32).to_be_bytes().to_vec();
    bytes.extend(kind);
    bytes.extend(data);
    let sum = bytes[4..].iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            (sum >> 1) ^ (0xedb8_8320 & 0u32.wrapping_sub(sum & 1))
        })
    });
    bytes.extend((!sum).to_be_bytes());
    bytes
}

/// So many zeros, compressed by hand: one block of fixed codes with a zero and then copies of 258 bytes from
/// one byte back, 13 bits each.
fn zeros(length: usize) -> Vec<u8> {
    let (mut bytes, mut held, mut bits) = (vec![0x78, 0x01], 0u32, 0);
    let mut write = |value: u32, count: u32| {
        held |= value << bits;
        bits += count;
        while bits >= 8 {
            bytes.push(held as u8);
            held >>= 8;
            bits -= 8;
        }
    };
    // Codes are written from their highest bit: 0 is 00110000, 258 is 11000101, the end is 0000000.
    write(0b011, 3);
    write(0b0000_1100, 8);
    let copies = (length - 1) / 258;
    for _ in 0..copies {
        write(0b1010_0011, 8);
        write(0, 5);
    }
    for _ in 0..length - 1 - 258 * copies {
        write(0b0000_1100, 8);
    }
    write(0, 7);
    write(0, 7);
    // Sums of the bytes, which are 0, and of these sums, which start at 1.
    bytes.extend((((length % 65_521) as u32) << 16 | 1).to_be_bytes());
    bytes
}
