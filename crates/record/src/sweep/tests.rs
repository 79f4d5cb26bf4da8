use std::collections::BTreeMap;
use std::sync::Arc;

use airloom_testkit::Folder;

use super::*;
use crate::columns::{Column, Values};

fn names() -> Vec<String> {
    ["runs", "flows", "pages", "rate"].map(str::to_owned).into()
}

fn axes() -> [String; 2] {
    ["loss", "link"].map(str::to_owned)
}

fn run(point: i64, seed: u64, error: Option<&str>) -> Run {
    Run {
        point,
        labels: Arc::new([Label::Real(point as f64 / 2.0), Label::Text(format!("link {point}"))]),
        seed,
        run_id: format!("{point}-{seed}"),
        error: error.map(str::to_owned),
        is_lost: error == Some("lost"),
        rate: (seed == 1).then(|| ("a.wire.ip".to_owned(), 10, vec![1, 2])),
    }
}

/// Two rows for each run, the later one first, with every kind of column; every second cell is empty.
fn flows(runs: &[Run]) -> Vec<Column> {
    let rows = || runs.iter().flat_map(|run| [run.seed * 10 + 2, run.seed * 10 + 1]);
    let numbers = (0..runs.len() as u32).flat_map(|run| [run, run]).collect();
    let column = |name, values| Column { name, values, valid: Some(rows().map(|n| n % 2 == 0).collect()) };
    let codes = rows().map(|n| (n % 3) as u16).collect();
    vec![
        Column { name: "run", values: Values::U32(numbers), valid: None },
        Column { name: "open_ns", values: Values::I64(rows().map(|n| n as i64).collect()), valid: None },
        column("u64", Values::U64(rows().map(|n| u64::MAX - n).collect())),
        column("u32", Values::U32(rows().map(|n| u32::MAX - n as u32).collect())),
        column("u16", Values::U16(rows().map(|n| u16::MAX - n as u16).collect())),
        column("u8", Values::U8(rows().map(|n| u8::MAX - n as u8).collect())),
        column("f64", Values::F64(rows().map(|n| n as f64 / 7.0).collect())),
        column("text", Values::Text(rows().map(|n| format!("ü{n}")).collect())),
        column("few", Values::Category { codes, names: ["a", "b", "c"].map(str::to_owned).into() }),
    ]
}

fn part(runs: &[Run]) -> Part {
    let keys = ["all", "own"].map(str::to_owned);
    let own = runs.iter().map(|run| if run.seed % 2 == 0 { f64::NAN } else { run.seed as f64 });
    let values = vec![vec![1.0; runs.len()], own.collect()];
    let good: Vec<&Run> = runs.iter().filter(|run| !run.is_lost).collect();
    let tables =
        if good.is_empty() { BTreeMap::new() } else { BTreeMap::from([("flows".to_owned(), flows(runs))]) };
    Part::new(&axes(), runs, &keys, values, tables).unwrap()
}

fn all(parts: &[&Part]) -> Vec<(String, Vec<u8>)> {
    octets(&parts.iter().map(|part| Source::Part(part)).collect::<Vec<_>>(), &names()).unwrap()
}

fn three() -> [Part; 3] {
    let runs = |keys: &[(i64, u64)]| keys.iter().map(|(p, s)| run(*p, *s, None)).collect::<Vec<_>>();
    [runs(&[(0, 7), (1, 1), (0, 3)]), runs(&[(1, 2), (0, 1)]), runs(&[(0, 2)])].map(|runs| part(&runs))
}

#[test]
fn how_runs_were_grouped_and_where_they_lie_does_not_show() {
    let [one, two, other] = three();
    let expected = all(&[&one, &two, &other]);
    assert_eq!(expected.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["runs", "flows", "rate"]);
    assert!(all(&[&other, &one, &two]) == expected);
    assert!(all(&[&one, &one, &two, &other, &two]) == expected, "what is there twice counts once");
    assert!(all(&[&one, &two]) != expected);

    let folder = Folder::new("sweep-grouped");
    keep(&[Source::Part(&two)], &names(), &folder.0).unwrap();
    keep(&[Source::Part(&other), Source::Part(&one)], &names(), &folder.0).unwrap();
    let kept: Vec<PathBuf> = ["0", "1"].map(|name| folder.0.join(name)).into();
    let sources = [Source::Folder(&kept[1]), Source::Folder(&kept[0])];
    assert!(octets(&sources, &names()).unwrap() == expected, "files say what memory says");
    write(&sources, &names(), &folder.0).unwrap();
    assert!(octets(&[Source::Folder(&folder.0)], &names()).unwrap() == expected);
    let both = [Source::Folder(&folder.0), Source::Folder(&kept[0]), Source::Part(&one)];
    assert!(octets(&both, &names()).unwrap() == expected, "the process was killed before the parts went");
    let done = Done::read(&kept).unwrap();
    assert_eq!((done.runs(), done.failed()), (6, 0));
    assert!(done.contains(1, 2) && !done.contains(1, 3));
}

#[test]
fn a_run_has_its_own_cells_in_the_order_of_time() {
    let [one, two, other] = three();
    let sources = [&one, &two, &other].map(Source::Part);
    let merged = Merged::new(&sources, "flows").unwrap().unwrap();
    let column = |name: &str| {
        let number = merged.columns.iter().position(|column| column.0 == name).unwrap();
        merged.fill(number, 1..4).unwrap()
    };
    // Seeds 1, 2, 3 and 7 of point 0 come first, two rows each.
    assert_eq!(column("seed").cells, Cells::U64(vec![1, 2, 2]));
    assert_eq!(column("open_ns").cells, Cells::I64(vec![12, 21, 22]));
    assert_eq!(column("u64").valid, Some(vec![true, false, true]));
    assert_eq!(column("loss").cells, Cells::F64(vec![0.0; 3]));
    let Cells::Text(texts) = column("few").cells else { panic!("texts") };
    assert_eq!((texts[0].data(), texts[2].data()), (&b"a"[..], &b"b"[..]));
}

#[test]
fn rates_are_of_the_least_seed_of_each_point_whenever_it_was_made() {
    let rated = |keys: &[(i64, u64)]| {
        let rate = |seed| Some(("a.wire.ip".to_owned(), 10, vec![seed, seed]));
        part(&keys.iter().map(|&(p, s)| Run { rate: rate(s), ..run(p, s, None) }).collect::<Vec<_>>())
    };
    let (before, later) = (rated(&[(0, 5), (1, 2)]), rated(&[(0, 1), (1, 5), (2, 3)]));
    for sources in [[&before, &later], [&later, &before]] {
        let merged = Merged::new(&sources.map(Source::Part), "rate").unwrap().unwrap();
        let column = |name: &str| {
            let number = merged.columns.iter().position(|column| column.0 == name).unwrap();
            merged.fill(number, 0..6).unwrap().cells
        };
        assert_eq!(column("point"), Cells::I64(vec![0, 0, 1, 1, 2, 2]));
        assert_eq!(column("seed"), Cells::U64(vec![1, 1, 2, 2, 3, 3]));
    }
}

#[test]
fn what_was_lost_gives_way_to_the_same_run_made_later() {
    let made = part(&[run(0, 1, None), run(0, 2, Some("broken"))]);
    let lost = part(&[run(0, 1, Some("lost")), run(0, 2, Some("lost"))]);
    assert!(all(&[&lost, &made]) == all(&[&made]));
    assert!(all(&[&made, &lost]) == all(&[&made]));
    assert!(all(&[&lost])[0] != all(&[&made])[0]);

    let folder = Folder::new("sweep-lost");
    keep(&[Source::Part(&lost)], &names(), &folder.0).unwrap();
    let mut kept = vec![folder.0.join("0")];
    assert_eq!(Done::read(&kept).unwrap().runs(), 0, "it is made again");
    for _ in 0..2 {
        kept.push(folder.0.join(kept.len().to_string()));
        keep(&[Source::Part(&made)], &names(), &folder.0).unwrap();
        let done = Done::read(&kept).unwrap();
        assert_eq!((done.runs(), done.failed()), (2, 1), "what is there twice counts once");
    }
}

#[test]
fn names_of_summaries_are_sorted_whoever_has_them() {
    let own = |key: &str, seed| {
        Part::new(&axes(), &[run(0, seed, None)], &[key.to_owned()], vec![vec![2.0]], BTreeMap::new())
            .unwrap()
    };
    let (b, a) = (own("b", 1), own("a", 2));
    let sources = [&b, &a].map(Source::Part);
    let merged = Merged::new(&sources, "runs").unwrap().unwrap();
    let names: Vec<&str> = merged.columns.iter().map(|column| column.0.as_str()).collect();
    assert_eq!(names, ["point", "loss", "link", "seed", "run_id", "status", "error", "a", "b"]);
    assert_eq!(merged.fill(7, 0..2).unwrap().valid, Some(vec![false, true]));
    let taken =
        Part::new(&axes(), &[run(0, 1, None)], &["loss".to_owned()], vec![vec![0.0]], BTreeMap::new());
    assert_eq!(taken.err(), Some(NameTaken("loss".to_owned())));
}

#[test]
fn a_file_that_was_cut_anywhere_is_named() {
    let folder = Folder::new("sweep-cut");
    keep(&[Source::Part(&three()[0])], &names(), &folder.0).unwrap();
    let kept = folder.0.join("0");
    let path = kept.join("flows.parquet");
    let whole = fs::read(&path).unwrap();
    for end in (0..whole.len()).step_by(7) {
        fs::write(&path, &whole[..end]).unwrap();
        let error = octets(&[Source::Folder(&kept)], &names()).unwrap_err();
        assert!(matches!(&error, Error::Damaged(named, _) if *named == path), "{end}: {error:?}");
    }
}

#[test]
fn what_cannot_be_written_is_named_and_leaves_nothing() {
    let folder = Folder::new("sweep-unwritten");
    let place = folder.0.join("none");
    let [one, ..] = three();
    for error in
        [write(&[Source::Part(&one)], &names(), &place), keep(&[Source::Part(&one)], &names(), &place)]
    {
        assert!(matches!(error, Err(Error::Io(path, _)) if path.starts_with(&place)));
    }
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0);
}
