//! `metra doctor`: what this program is and what it finds on this machine, for a report about a problem.

use crate::args::Common;
use crate::print;
use anyhow::Result;
use clap::Args;
use metra::experiment::compare::CODE_DIGEST;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Show the version, the processor, memory, and which optional parts were found.
///
/// Paste it into a report about a problem. It names no file of yours and no value of a variable, opens no
/// connection and writes nothing that stays.
#[derive(Args)]
pub(crate) struct Doctor {}

#[derive(Serialize)]
struct Findings {
    version: &'static str,
    /// Digest of the library's sources.
    code: &'static str,
    system: String,
    processor: String,
    /// Which of the instructions that the arithmetic can use are there.
    instructions: Vec<&'static str>,
    threads: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    free_memory_bytes: Option<u64>,
    cache_dir: PathBuf,
    /// What is wrong with that folder, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_dir_problem: Option<String>,
    /// Parts of this build, and whether each is in it.
    features: BTreeMap<&'static str, bool>,
    /// The browser of `metra pages`.
    #[serde(skip_serializing_if = "Option::is_none")]
    browser: Option<PathBuf>,
    /// Variables of the environment that this command reads and that are set.
    variables: Vec<&'static str>,
}

/// Variables that change what the command does.
const VARIABLES: [&str; 5] = [
    "METRA_THREADS",
    "METRA_MEMORY",
    "METRA_CACHE_DIR",
    "NO_COLOR",
    "TMPDIR",
];

impl Doctor {
    pub(crate) fn run(&self, common: &Common) -> Result<()> {
        let findings = found(common);
        if common.json {
            return print::json(&findings);
        }
        let Findings { version, code, .. } = findings;
        print::fact("version", &format!("{version} (sources {code})"))?;
        print::fact("system", &findings.system)?;
        print::fact("processor", &findings.processor)?;
        print::fact("arithmetic", &listed(&findings.instructions))?;
        print::fact("threads", &findings.threads.to_string())?;
        if let (Some(all), Some(free)) = (findings.memory_bytes, findings.free_memory_bytes) {
            let gigabytes = |bytes: u64| bytes as f64 / f64::from(1 << 30);
            let text = format!("{:.1} GiB, {:.1} GiB free", gigabytes(all), gigabytes(free));
            print::fact("memory", &text)?;
        }
        let folder = findings.cache_dir.display();
        let problem = findings
            .cache_dir_problem
            .map_or("can be written".into(), |p| p);
        print::fact("cache", &format!("{folder}: {problem}"))?;
        for (name, is_there) in &findings.features {
            let there = if *is_there {
                "yes"
            } else {
                "no: this build is without it"
            };
            print::fact(name, there)?;
        }
        #[cfg(feature = "images")]
        {
            let browser = findings.browser.as_ref();
            let browser = browser.map(|path| path.display().to_string());
            let none = "none found; only `metra pages shoot` needs one";
            print::fact("browser", browser.as_deref().unwrap_or(none))?;
        }
        print::fact("variables", &listed(&findings.variables))
    }
}

fn listed(names: &[&str]) -> String {
    match names.is_empty() {
        true => "none".into(),
        false => names.join(" "),
    }
}

fn found(common: &Common) -> Findings {
    let cache_dir = common.cache_dir();
    Findings {
        version: env!("CARGO_PKG_VERSION"),
        code: CODE_DIGEST,
        system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        processor: processor().unwrap_or_else(|| "unknown".into()),
        instructions: instructions(),
        threads: rayon::current_num_threads(),
        memory_bytes: memory("MemTotal:"),
        free_memory_bytes: memory("MemAvailable:"),
        cache_dir_problem: tempfile::tempfile_in(&cache_dir)
            .err()
            .map(|e| e.to_string()),
        cache_dir,
        features: BTreeMap::from([
            ("cluster", cfg!(feature = "cluster")),
            ("images", cfg!(feature = "images")),
            ("index", cfg!(feature = "index")),
            ("postgres", cfg!(feature = "postgres")),
            ("serve", cfg!(feature = "serve")),
        ]),
        browser: browser(),
        variables: (VARIABLES.into_iter())
            .filter(|name| std::env::var_os(name).is_some())
            .collect(),
    }
}

#[cfg(feature = "images")]
fn browser() -> Option<PathBuf> {
    let found = metra_images::pages::Browser::find(None).ok()?;
    Some(found.program().to_path_buf())
}

#[cfg(not(feature = "images"))]
fn browser() -> Option<PathBuf> {
    None
}

/// The processor's name; Linux tells it in a file.
fn processor() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Bytes that Linux states in this line of its file about memory.
fn memory(name: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = rest.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(target_arch = "x86_64")]
fn instructions() -> Vec<&'static str> {
    let known = [
        ("avx2", std::arch::is_x86_feature_detected!("avx2")),
        ("fma", std::arch::is_x86_feature_detected!("fma")),
        ("avx512f", std::arch::is_x86_feature_detected!("avx512f")),
    ];
    let there = known.into_iter().filter(|(_, is_there)| *is_there);
    there.map(|(name, _)| name).collect()
}

#[cfg(target_arch = "aarch64")]
fn instructions() -> Vec<&'static str> {
    vec!["neon"]
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn instructions() -> Vec<&'static str> {
    Vec::new()
}
