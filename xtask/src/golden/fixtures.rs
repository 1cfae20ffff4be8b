//! The small sets that golden cases learn from, made by arithmetic alone so that they are the same
//! everywhere: ten classes of twelve rows in eight non-negative dimensions, seen by two cameras.

use anyhow::Result;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;

const CLASSES: usize = 10;
const PER_CLASS: usize = 12;
const DIMENSIONS: usize = 8;
const QUERIES: usize = 30;

/// The numbers of a linear congruential generator (Knuth's MMIX constants), between 0 and 1.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f64 / (1_u64 << 24) as f64
    }

    fn below(&mut self, most: usize) -> usize {
        (self.next() * most as f64) as usize
    }
}

/// A row of a class: half of the dimensions tell classes apart, the others are louder noise.
fn vector(class: usize, numbers: &mut Numbers) -> String {
    let values = (0..DIMENSIONS).map(|at| {
        let centre = match at < DIMENSIONS / 2 {
            true => ((class * (at + 3) + at) % 7) as f64,
            false => 3.0,
        };
        let noise = if at < DIMENSIONS / 2 { 1.2 } else { 4.0 };
        format!("{:.4}", centre + noise * numbers.next())
    });
    values.collect::<Vec<_>>().join(",")
}

fn header() -> String {
    let names: Vec<String> = (0..DIMENSIONS).map(|at| format!("v{at}")).collect();
    format!("id,class,camera,part,{}\n", names.join(","))
}

/// Write all files into a folder.
pub(super) fn write(folder: &Path) -> Result<()> {
    let mut numbers = Numbers(7);
    let mut items = header();
    for row in 0..CLASSES * PER_CLASS {
        let class = row % CLASSES;
        let (camera, part) = ((row / CLASSES) % 2, if row < 80 { "train" } else { "test" });
        let vector = vector(class, &mut numbers);
        writeln!(items, "r{row},c{class},{camera},{part},{vector}")?;
    }
    let mut queries = header();
    let mut qrels = String::new();
    for query in 0..QUERIES {
        let class = query % CLASSES;
        let vector = vector(class, &mut numbers);
        writeln!(queries, "q{query},c{class},{},test,{vector}", query % 2)?;
        let first = numbers.below(PER_CLASS);
        for step in 0..4 {
            let row = class + CLASSES * ((first + 3 * step) % PER_CLASS);
            writeln!(qrels, "q{query} 0 r{row} {}", 1 + row % 2)?;
        }
    }
    let (mut within, mut judged) = (String::new(), BTreeSet::new());
    let [mut pairs, mut triplets, mut quadruplets] = [const { String::new() }; 3];
    for number in 0..200 {
        let [a, c] = [0; 2].map(|_| numbers.below(CLASSES * PER_CLASS));
        let b = (a + CLASSES * (1 + number % (PER_CLASS - 1))) % (CLASSES * PER_CLASS);
        if a % CLASSES == c % CLASSES {
            continue;
        }
        if judged.insert((a, b)) {
            writeln!(within, "r{a} 0 r{b} 1")?;
        }
        writeln!(pairs, "r{a}\tr{b}\t1\nr{a}\tr{c}\t0")?;
        writeln!(triplets, "r{a}\tr{b}\tr{c}")?;
        writeln!(quadruplets, "r{a}\tr{b}\tr{a}\tr{c}\tstrict")?;
    }
    let mut clicks = String::new();
    for session in 0..60 {
        let shown: Vec<String> = (0..5)
            .map(|at| format!("r{}", (session * 3 + at * 7) % 120))
            .collect();
        let clicked = &shown[numbers.below(5)];
        writeln!(
            clicks,
            "q{}\t{}\t{clicked}",
            session % QUERIES,
            shown.join(" ")
        )?;
    }
    let tree: String = (0..CLASSES)
        .map(|class| format!("c{class}\tg{}\n", class % 3))
        .chain((0..3).map(|group| format!("g{group}\troot\n")))
        .collect();
    let orders = "bright: c0<c1<c2~c3<c4<c5\nlarge: c9<c8<c7<c6~c5<c4\n";
    let splits = r#"{"by": "label", "splits": [{"train": ["c0","c1","c2","c3","c4"], "test": ["c5","c6","c7","c8","c9"]}]}"#;
    let experiment = r#"name = "golden"
about = "Two methods on a small set"
trials = 2

[data]
vectors = "items.csv"
vector = "v"
label = "class"

[split]
draws = 2

[judge]
measures = ["map", "p@1"]

[[method]]
name = "euclid"
method = "euclid"

[[method]]
name = "lda"
method = "lda"
"#;
    let files = [
        ("items.csv", items),
        ("queries.csv", queries),
        ("qrels.txt", qrels),
        ("within.txt", within),
        ("pairs.tsv", pairs),
        ("triplets.tsv", triplets),
        ("quadruplets.tsv", quadruplets),
        ("clicks.tsv", clicks),
        ("tree.tsv", tree),
        ("orders.txt", orders.to_owned()),
        ("splits.json", splits.to_owned()),
        ("experiment.toml", experiment.to_owned()),
    ];
    for (name, text) in files {
        fs::write(folder.join(name), text)?;
    }
    let images = folder.join("images");
    fs::create_dir_all(&images)?;
    for row in 0..12 {
        fs::write(
            images.join(format!("{}_{}.bmp", row / 2, row % 2)),
            bitmap(row, &mut numbers),
        )?;
    }
    Ok(())
}

/// A bitmap of 24 bits, 48 × 96, with a colour of its own.
fn bitmap(row: usize, numbers: &mut Numbers) -> Vec<u8> {
    const WIDTH: usize = 48;
    const HEIGHT: usize = 96;
    let pixels = WIDTH * HEIGHT * 3;
    let mut bytes = b"BM".to_vec();
    for word in [54 + pixels as u32, 0, 54, 40, WIDTH as u32, HEIGHT as u32] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend([1, 0, 24, 0]);
    for word in [0, pixels as u32, 2835, 2835, 0, 0] {
        bytes.extend(word.to_le_bytes());
    }
    for at in 0..pixels {
        let tone = 40 * (row / 2) + 30 * (at % 3) + at / (WIDTH * 24);
        bytes.push((tone as f64 + 40.0 * numbers.next()) as u8);
    }
    bytes
}
