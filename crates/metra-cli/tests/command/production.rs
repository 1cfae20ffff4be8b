//! What happens to a command where people rely on it: readers that leave, full disks, kills, and files that
//! mean harm.

use super::folder::{Folder, example, text};
use std::fs::{self, File};
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

/// Run with a standard output whose reader has left.
fn unread(folder: &Folder, line: &str) -> Output {
    let mut child = folder.command(line, &[]);
    let child = child.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    drop(child.stdout.take());
    child.wait_with_output().unwrap()
}

/// Run with a standard output that has no room.
#[cfg(target_os = "linux")]
fn to_full_disk(folder: &Folder, line: &str) -> Output {
    let full = File::options().write(true).open("/dev/full").unwrap();
    folder.command(line, &[]).stdout(full).output().unwrap()
}

const TRAIN: &str = "train data.parquet --label label --where train=true --method lda --rank 4";

#[test]
fn whoever_reads_changes_no_exit_code_and_loses_no_file() {
    let folder = Folder::new();
    example(&folder);
    let done = unread(&folder, &format!("{TRAIN} -o m.safetensors"));
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    folder.good("inspect m.safetensors", &[]);
    let worse = "gate --base m.safetensors --candidate euclid --data data.parquet --label label \
                 --where train=false";
    for line in [worse.to_owned(), format!("{worse} --json")] {
        let done = unread(&folder, &line);
        assert_eq!(done.status.code(), Some(4), "{}", text(&done.stderr));
    }
    let done = unread(&folder, "search m.safetensors data.parquet");
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));

    #[cfg(target_os = "linux")]
    {
        let done = to_full_disk(&folder, &format!("{TRAIN} -o second.safetensors"));
        let error = text(&done.stderr);
        assert_eq!(done.status.code(), Some(1), "{error}");
        assert!(error.contains("standard output: No space left"), "{error}");
        let [first, second] =
            ["m", "second"].map(|name| folder.bytes(&format!("{name}.safetensors")));
        assert!(first == second);
        assert_eq!(to_full_disk(&folder, worse).status.code(), Some(4));
    }
}

#[test]
fn ids_do_not_steer_the_terminal() {
    let folder = Folder::new();
    let rows =
        "vector_0,vector_1,id,k\n1,2,\u{1b}[2J\u{1b}]0;owned\u{7},a\n2,1,b,a\n3,3,c,b\n4,1,d,b\n";
    folder.write("x.csv", rows);
    folder.good(
        "train x.csv --label k --method pca --rank 2 --holdout none -o m.safetensors",
        &[],
    );
    for line in [
        "search m.safetensors x.csv --id id -k 1",
        "search m.safetensors x.csv --id id -k 1 --json",
    ] {
        let (out, _) = folder.good(line, &[]);
        assert!(out.contains("\\u001b[2J"), "{out:?}");
        assert!(!out.contains('\u{1b}') && !out.contains('\u{7}'), "{out:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn devices_and_pipes_are_no_models() {
    let folder = Folder::new();
    let made = std::process::Command::new("mkfifo")
        .arg(folder.path("pipe"))
        .status();
    assert!(made.unwrap().success());
    let began = Instant::now();
    for name in ["/dev/zero", "pipe", "."] {
        let message = folder.refused(&format!("inspect {name}"), &[]);
        assert!(message.contains("expected a regular file"), "{message}");
    }
    assert!(began.elapsed() < Duration::from_secs(10));
}

/// Run a command and kill it after some time; whether it was still running.
fn killed_after(folder: &Folder, line: &str, moment: Duration) -> bool {
    let mut child = folder.command(line, &[]);
    let mut child = child
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(moment);
    let running = child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    child.wait().unwrap();
    running
}

/// A training that is killed at moments in the course of it, and goes on each time.
fn killed_at(moments: usize) {
    let folder = Folder::new();
    example(&folder);
    let train = "train data.parquet --label label --where train=true --method warca --rank 8 --seed 4 \
                 --tune lambda=1e-4,1e-2 --set steps=150 --set batch=256 --set pool=256 --threads 1";
    let began = Instant::now();
    folder.good(&format!("{train} -o whole.safetensors"), &[]);
    let whole = began.elapsed();
    let line = format!("{train} --checkpoint c.bin --checkpoint-every 0 -o m.safetensors");
    let (mut killed, mut round) = (0, 0_u32);
    while killed < moments {
        round += 1;
        // Moments spread over the whole by the golden ratio, so that few of them fall together.
        let share = (f64::from(round) * 0.618_034).fract();
        let moment = whole.mul_f64(0.1 + 0.8 * share) / 2;
        killed += usize::from(killed_after(&folder, &line, moment));
        // Nothing torn: a model is whole or not there.
        if folder.path("m.safetensors").exists() {
            folder.good("inspect m.safetensors", &[]);
            assert!(folder.bytes("m.safetensors") == folder.bytes("whole.safetensors"));
            fs::remove_file(folder.path("m.safetensors")).unwrap();
        }
    }
    folder.good(&line, &[]);
    assert!(folder.bytes("m.safetensors") == folder.bytes("whole.safetensors"));
    assert!(
        !folder.path("c.bin").exists(),
        "a training that is done needs none"
    );
}

#[test]
fn a_killed_training_goes_on_to_the_same_model() {
    killed_at(4);
    let folder = Folder::new();
    example(&folder);
    folder.write("c.bin", "something of the user's");
    let line = format!("{TRAIN} --checkpoint c.bin -o m.safetensors");
    let message = folder.refused(&line, &[]);
    assert!(message.contains("c.bin: is no checkpoint"), "{message}");
    assert_eq!(text(&folder.bytes("c.bin")), "something of the user's");
}

/// How often the slow tests kill: `METRA_KILLS`, or so often.
fn kills(usual: usize) -> usize {
    std::env::var("METRA_KILLS").map_or(usual, |count| count.parse().unwrap())
}

#[test]
#[ignore = "slow: kills a training many times"]
fn many_kills_change_no_byte() {
    killed_at(kills(40));
}

/// Every verb that writes, and what it writes below `out`.
const WRITES: [(&str, &str); 11] = [
    (
        "train data.parquet --label label --method pca --rank 64 -o out/m.safetensors",
        "m.safetensors",
    ),
    (
        "train data.parquet --label label --method lda --rank 4 --report out/r.html",
        "r.html",
    ),
    (
        "calibrate m.safetensors data.parquet --label label --where train=false -o out/c.safetensors",
        "c.safetensors",
    ),
    ("embed m.safetensors data.parquet -o out/z.npy", "z.npy"),
    (
        "embed m.safetensors data.parquet -o out/z.parquet",
        "z.parquet",
    ),
    (
        "search m.safetensors data.parquet --run out/run.txt",
        "run.txt",
    ),
    ("index m.safetensors data.parquet -o out/index", "index"),
    (
        "export m.safetensors --items data.parquet -o out/m.faiss",
        "m.faiss",
    ),
    ("export m.safetensors -o out/m.h", "m.h"),
    (
        "compare data.parquet --label label --methods pca,lda --no-cost --output out/compared",
        "compared/results.json",
    ),
    (
        "train data.parquet --label label --method warca --rank 64 --set steps=20 --checkpoint out/c.bin \
         --checkpoint-every 0 -o out/w.safetensors",
        "w.safetensors",
    ),
];

/// A report without the cells that state how long something took, which no two runs share.
fn without_times(report: &str) -> String {
    let is_time = |cell: &str| {
        let text = cell.split('<').next().unwrap_or_default();
        text.ends_with(" ms") || text.ends_with(" s")
    };
    let cells = report.split("<td>").map(|cell| match is_time(cell) {
        true => cell.split_once('<').map_or("", |(_, rest)| rest),
        false => cell,
    });
    cells.collect::<Vec<_>>().join("<td>")
}

/// The bytes of a file, or of all files of a folder; `None` where there is nothing.
fn content(path: &Path) -> Option<Vec<(String, Vec<u8>)>> {
    if path.is_file() {
        let mut bytes = fs::read(path).unwrap();
        if path.extension().is_some_and(|kind| kind == "html") {
            bytes = without_times(&String::from_utf8(bytes).unwrap()).into_bytes();
        }
        return Some(vec![(String::new(), bytes)]);
    }
    let mut files: Vec<_> = (fs::read_dir(path).ok()?)
        .map(|entry| entry.unwrap())
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, fs::read(entry.path()).unwrap())
        })
        .collect();
    files.sort();
    Some(files)
}

/// Killed at any moment, a verb leaves its whole output or none, and run again it writes the same bytes.
#[test]
#[ignore = "slow: kills every verb that writes"]
fn killed_verbs_leave_whole_files_or_none() {
    let folder = Folder::new();
    example(&folder);
    folder.good(&format!("{TRAIN} -o m.safetensors"), &[]);
    for (line, output) in WRITES {
        let fresh = || {
            let _ = fs::remove_dir_all(folder.path("out"));
            fs::create_dir(folder.path("out")).unwrap();
        };
        let place = folder.path("out").join(output);
        fresh();
        let began = Instant::now();
        folder.good(line, &[]);
        let whole = (began.elapsed(), content(&place).unwrap());
        fresh();
        let (mut unfinished, moments) = (0, kills(3));
        for round in 0..moments {
            let share = (round as f64 * 0.618_034).fract();
            killed_after(&folder, line, whole.0.mul_f64(share));
            match content(&place) {
                Some(found) => assert!(found == whole.1, "{line}: something else was written"),
                None => unfinished += 1,
            }
            let _ = fs::remove_file(&place);
            if output == "index" {
                let _ = fs::remove_dir_all(&place);
            }
        }
        folder.good(line, &[]);
        assert!(
            content(&place).as_ref() == Some(&whole.1),
            "{line}: other bytes in the end"
        );
        println!("{moments} kills, {unfinished} before the file was there: {line}");
    }
}

/// A shard folder is read whole or not at all.
#[cfg(feature = "cluster")]
#[test]
fn folders_of_shards_are_whole_and_of_one_run() {
    let folder = Folder::new();
    example(&folder);
    let shard = |more: &str| format!("shard data.parquet --label label -o out {more}");
    folder.good(&shard("--shards 4"), &[]);
    let check = "eval euclid out --label label --cluster here --json";
    let (whole, _) = folder.good(check, &[]);
    assert!(whole.contains("\"items\": 720"), "{whole}");
    let message = folder.refused(&shard("--shards 2"), &[]);
    assert!(
        message.contains("already holds 4 Parquet files"),
        "{message}"
    );
    folder.good(&shard("--shards 2 --force"), &[]);
    assert!(folder.good(check, &[]).0.contains("\"items\": 720"));
    // One file is lost, cut short, or another one comes in.
    let place = folder.path("out/shard-00001.parquet");
    let bytes = fs::read(&place).unwrap();
    fs::remove_file(&place).unwrap();
    assert!(
        folder
            .refused(check, &[])
            .contains("shard-00001.parquet is missing")
    );
    fs::write(&place, &bytes[..bytes.len() - 1]).unwrap();
    assert!(folder.refused(check, &[]).contains("bytes, but found"));
    fs::write(&place, &bytes).unwrap();
    fs::write(folder.path("out/shard-00002.parquet"), &bytes).unwrap();
    assert!(
        folder
            .refused(check, &[])
            .contains("is not among the files")
    );
    fs::remove_file(folder.path("out/shard-00002.parquet")).unwrap();
    fs::write(folder.path("out/_metra.unfinished"), "").unwrap();
    assert!(folder.refused(check, &[]).contains("did not finish"));
    // A file of the user's is kept, whatever is asked for.
    fs::create_dir(folder.path("out/own")).unwrap();
    fs::write(folder.path("out/own/shard-00000.parquet"), &bytes).unwrap();
    for more in ["--shards 3", "--shards 3 --force"] {
        let message = folder.refused(&shard(more), &[]);
        assert!(message.contains("own/shard-00000.parquet"), "{message}");
    }
    assert_eq!(
        fs::read(folder.path("out/own/shard-00000.parquet")).unwrap(),
        bytes
    );
    fs::remove_dir_all(folder.path("out/own")).unwrap();
    // What was not finished may be written again.
    folder.good(&shard("--shards 3"), &[]);
    assert!(folder.good(check, &[]).0.contains("\"items\": 720"));
}

/// Every verb that writes, on a disk without room: an error that says so, and nothing half-written.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "slow: mounts a small disk, which needs root"]
fn a_full_disk_is_named_and_leaves_nothing_half_written() {
    use std::process::Command;
    let folder = Folder::new();
    example(&folder);
    folder.good(&format!("{TRAIN} -o m.safetensors"), &[]);
    let disk = folder.path("out");
    fs::create_dir(&disk).unwrap();
    let mount = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
        .arg(&disk)
        .status();
    if !mount.is_ok_and(|status| status.success()) {
        eprintln!("skipped: a tmpfs cannot be mounted");
        return;
    }
    struct Unmount(std::path::PathBuf);
    impl Drop for Unmount {
        fn drop(&mut self) {
            let _ = Command::new("umount").arg(&self.0).status();
        }
    }
    let _unmount = Unmount(disk.clone());
    // To the last byte: what does not fit is the error that is wanted here.
    let _ = fs::write(disk.join("fill"), vec![0; 128 << 10]);
    for (line, _) in WRITES {
        let done = folder.run(line, &[]);
        let error = text(&done.stderr);
        assert_eq!(done.status.code(), Some(1), "{line}\n{error}");
        assert!(error.contains("No space left"), "{line}\n{error}");
        let left: Vec<String> = fs::read_dir(&disk)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .filter(|name| name != "fill" && name != "compared")
            .collect();
        assert!(left.is_empty(), "{line}: {left:?}");
    }
}
