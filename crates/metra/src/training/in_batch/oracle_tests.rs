//! The losses against pytorch-metric-learning: values and derivatives by the embedded rows. All
//! constants are printed by tests/oracles/constants/in_batch_losses.py, which also says where its
//! definitions are others than the papers'.

use super::batch::{Batch, IGNORED};
use super::cosines::{PairLoss, Units};
use super::steps::Derivatives;
use crate::linalg::RowBuf;
use crate::methods::{MultiSimilarity, ProxyAnchor, SupCon};

const LABELS: [usize; 10] = [0, 0, 0, 1, 1, 1, 2, 2, 2, 3];

/// The script's `made`.
fn made(rows: usize, shift: f64) -> RowBuf {
    let mut made = RowBuf::zeros(rows, 4);
    for row in 0..rows {
        for (column, value) in made.row_mut(row).iter_mut().enumerate() {
            let (r, c) = (row as f64, column as f64);
            *value = ((1.3 * r + 0.7 * c * c + shift).sin() + 0.4 * (2.1 * r * c).cos()) as f32;
        }
    }
    made
}

fn grades(anchors: &[usize], items: &[usize], own: bool) -> Vec<f32> {
    let mut grades = Vec::new();
    for (a, anchor) in anchors.iter().enumerate() {
        grades.extend(items.iter().enumerate().map(|(i, item)| {
            if own && a == i {
                IGNORED
            } else if anchor == item {
                1.0
            } else {
                0.0
            }
        }));
    }
    grades
}

fn assert_close(loss: f64, found: &RowBuf, expected: f64, derivatives: &[[f64; 4]], what: &str) {
    assert!(
        (loss / expected - 1.0).abs() < 1e-5,
        "{what}: {loss} {expected}"
    );
    assert_eq!(found.len(), derivatives.len());
    let largest = derivatives
        .iter()
        .flatten()
        .fold(0.0_f64, |a, b| a.max(b.abs()));
    for (found, expected) in found.values().iter().zip(derivatives.iter().flatten()) {
        let difference = (f64::from(*found) - expected).abs();
        assert!(difference < 1e-5 * largest, "{what}: {found} {expected}");
    }
}

/// The loss with its derivatives by the vectors of all rows and of all proxies.
fn derivatives(
    loss: &dyn PairLoss,
    batch: &Batch,
    rows: &Units,
    proxies: &Units,
) -> (f64, RowBuf, RowBuf) {
    let mut found = Derivatives::new(4);
    let value = found.set(loss, batch, (rows.rows(), rows.rows()), proxies.rows());
    rows.carry_back(&mut found.by_row);
    proxies.carry_back(&mut found.by_proxy);
    (value, found.by_row, found.by_proxy)
}

/// A loss whose anchors and items are the rows of the batch.
fn assert_within(loss: &dyn PairLoss, expected: f64, by_row: &[[f64; 4]], what: &str) {
    let batch = Batch {
        grades: grades(&LABELS, &LABELS, true),
        ..Batch::default()
    };
    let units = Units::new(made(10, 0.2).rows());
    let none = Units::new(RowBuf::empty(4).rows());
    let (value, found, _) = derivatives(loss, &batch, &units, &none);
    assert_close(value, &found, expected, by_row, what);
}

#[test]
fn multi_similarity_with_and_without_mining() {
    let with = |epsilon| MultiSimilarity {
        alpha: 2.0,
        beta: 50.0,
        base: 0.5,
        epsilon,
        ..MultiSimilarity::default()
    };
    let (all, mined, wide) = (with(2.0), with(0.1), with(0.5));
    assert_within(
        &all,
        MULTI_SIMILARITY_ALL,
        &MULTI_SIMILARITY_ALL_BY_ROW,
        "all pairs",
    );
    assert_within(
        &mined,
        MULTI_SIMILARITY,
        &MULTI_SIMILARITY_BY_ROW,
        "mined pairs",
    );
    assert_within(
        &wide,
        MULTI_SIMILARITY_WIDE,
        &MULTI_SIMILARITY_WIDE_BY_ROW,
        "pairs mined with a wide margin",
    );
}

#[test]
fn supcon_within_a_batch() {
    let loss = SupCon {
        temperature: 0.1,
        ..SupCon::default()
    };
    assert_within(&loss, SUPCON, &SUPCON_BY_ROW, "supcon");
}

#[test]
fn supcon_between_queries_and_items_is_infonce() {
    let batch = Batch {
        queries: vec![0, 1, 2, 3],
        grades: grades(&[0, 1, 2, 3], &[0, 1, 2, 3, 4, 5], false),
        ..Batch::default()
    };
    let mut rows = made(4, 0.2);
    rows.extend(made(6, 1.1).rows());
    let units = Units::new(rows.rows());
    let none = Units::new(RowBuf::empty(4).rows());
    let loss = SupCon {
        temperature: 0.1,
        ..SupCon::default()
    };
    let (value, found, _) = derivatives(&loss, &batch, &units, &none);
    assert_close(value, &found, INFONCE, &INFONCE_BY_ROW, "infonce");
}

#[test]
fn proxy_anchor_by_rows_and_proxies() {
    let batch = Batch {
        grades: grades(&[0, 1, 2, 3, 4], &LABELS, false),
        ..Batch::default()
    };
    let units = Units::new(made(10, 0.2).rows());
    let proxies = Units::new(made(5, 1.1).rows());
    let loss = ProxyAnchor {
        alpha: 32.0,
        margin: 0.1,
        ..ProxyAnchor::default()
    };
    let (value, by_row, by_proxy) = derivatives(&loss, &batch, &units, &proxies);
    assert_close(value, &by_row, PROXY_ANCHOR, &PROXY_ANCHOR_BY_ROW, "rows");
    assert_close(
        value,
        &by_proxy,
        PROXY_ANCHOR,
        &PROXY_ANCHOR_BY_PROXY,
        "proxies",
    );
}

const MULTI_SIMILARITY_ALL: f64 = 1.411406695528;
const MULTI_SIMILARITY_ALL_BY_ROW: [[f64; 4]; 10] = [
    [
        -0.042361527254,
        0.025089041786,
        0.038936901060,
        -0.041288736859,
    ],
    [
        -0.001303194891,
        0.003920340768,
        -0.001208391182,
        -0.001359157026,
    ],
    [
        -0.052649886477,
        -0.113875595945,
        -0.018541155897,
        -0.054440555362,
    ],
    [
        -0.045422313774,
        -0.062743766770,
        -0.077725117351,
        -0.045813390419,
    ],
    [
        -0.037432331936,
        -0.032547678585,
        -0.055247788731,
        -0.041747391333,
    ],
    [
        -0.022773646453,
        0.016100035171,
        -0.096498960931,
        -0.026224630957,
    ],
    [
        -0.016974584906,
        0.038402200878,
        -0.006105755794,
        -0.015006788189,
    ],
    [
        0.023495526181,
        0.059546360702,
        -0.032863476132,
        0.024444808490,
    ],
    [
        -0.060375742157,
        0.104537847902,
        0.111223840601,
        -0.057608156498,
    ],
    [
        -0.018989506297,
        -0.045888710407,
        0.009491122964,
        -0.018760380477,
    ],
];
const MULTI_SIMILARITY: f64 = 1.389586000604;
const MULTI_SIMILARITY_BY_ROW: [[f64; 4]; 10] = [
    [
        -0.042361458233,
        0.025089044554,
        0.038936740619,
        -0.041288668219,
    ],
    [
        -0.001303194891,
        0.003920340768,
        -0.001208391182,
        -0.001359157026,
    ],
    [
        -0.052649886477,
        -0.113875595945,
        -0.018541155897,
        -0.054440555362,
    ],
    [
        -0.046754005867,
        -0.069238264609,
        -0.082861495167,
        -0.047203192597,
    ],
    [
        -0.046202212165,
        -0.084565066458,
        -0.090634489112,
        -0.050618059644,
    ],
    [
        -0.023157008627,
        0.016173669085,
        -0.098522167908,
        -0.026638594338,
    ],
    [
        -0.016974584906,
        0.038402200878,
        -0.006105755794,
        -0.015006788189,
    ],
    [
        0.023495526181,
        0.059546360702,
        -0.032863476132,
        0.024444808490,
    ],
    [
        -0.060375742157,
        0.104537847902,
        0.111223840600,
        -0.057608156498,
    ],
    [
        -0.000010862276,
        -0.000025622428,
        0.000005221701,
        -0.000010666807,
    ],
];
const MULTI_SIMILARITY_WIDE: f64 = 1.392168922377;
const MULTI_SIMILARITY_WIDE_BY_ROW: [[f64; 4]; 10] = [
    [
        -0.042361458233,
        0.025089044554,
        0.038936740619,
        -0.041288668219,
    ],
    [
        -0.001303194891,
        0.003920340768,
        -0.001208391182,
        -0.001359157026,
    ],
    [
        -0.052649886477,
        -0.113875595945,
        -0.018541155897,
        -0.054440555362,
    ],
    [
        -0.045940262934,
        -0.069226685264,
        -0.082177434330,
        -0.046451716517,
    ],
    [
        -0.045779202903,
        -0.083721703995,
        -0.089724936443,
        -0.050062659229,
    ],
    [
        -0.022773646453,
        0.016100035171,
        -0.096498960931,
        -0.026224630957,
    ],
    [
        -0.016974584906,
        0.038402200878,
        -0.006105755794,
        -0.015006788189,
    ],
    [
        0.023495526181,
        0.059546360702,
        -0.032863476132,
        0.024444808490,
    ],
    [
        -0.060375742157,
        0.104537847902,
        0.111223840600,
        -0.057608156498,
    ],
    [
        -0.000010862276,
        -0.000025622428,
        0.000005221701,
        -0.000010666807,
    ],
];
const SUPCON: f64 = 9.778931349978;
const SUPCON_BY_ROW: [[f64; 4]; 10] = [
    [
        -0.449227736365,
        0.237764767866,
        0.477959856523,
        -0.440642844219,
    ],
    [
        -0.033001875926,
        0.095563711556,
        -0.028852774613,
        -0.031417570220,
    ],
    [
        -0.530312267031,
        -1.224398095601,
        -0.137772573514,
        -0.550061019304,
    ],
    [
        -0.359820412890,
        -0.337828045072,
        -0.515000974990,
        -0.354526217077,
    ],
    [
        -0.314427357955,
        -0.552806266033,
        -0.610518121888,
        -0.355750727049,
    ],
    [
        -0.160824975479,
        0.033423562885,
        -0.890428989005,
        -0.190829852546,
    ],
    [
        -0.200413191623,
        0.585507765459,
        0.165335248362,
        -0.178806264342,
    ],
    [
        0.091714795018,
        0.471396867588,
        -0.414186447308,
        0.101761891197,
    ],
    [
        -0.586180681074,
        0.902222278397,
        0.825893617404,
        -0.561657471924,
    ],
    [
        -0.005045035874,
        -0.022486569261,
        0.006104363606,
        -0.004998310362,
    ],
];
const INFONCE: f64 = 2.431978130624;
const INFONCE_BY_ROW: [[f64; 4]; 10] = [
    [
        -0.054410573967,
        -0.092766764253,
        0.303226758757,
        -0.035334107488,
    ],
    [
        -0.007022332896,
        0.358889740455,
        0.187102575064,
        0.000167950296,
    ],
    [
        0.600517698917,
        2.096144157775,
        -0.304614323748,
        0.625167867885,
    ],
    [
        0.004230589635,
        -0.041483203622,
        -0.021929887863,
        0.003528754872,
    ],
    [
        0.089615334244,
        -0.251406636144,
        -0.423720457314,
        0.082967084044,
    ],
    [
        -0.097866640341,
        -0.681376046002,
        -0.104650929638,
        -0.110064386643,
    ],
    [
        -1.170790031290,
        0.285741997709,
        1.290264162379,
        -1.153458626384,
    ],
    [
        0.000100660198,
        0.011673775685,
        0.001465725856,
        0.000421184988,
    ],
    [
        -0.284776141605,
        0.455820800245,
        0.350037861400,
        -0.308013087371,
    ],
    [
        0.012214410072,
        -0.094498746911,
        -0.034618658306,
        0.010453722247,
    ],
];
const PROXY_ANCHOR: f64 = 44.650041700360;
const PROXY_ANCHOR_BY_ROW: [[f64; 4]; 10] = [
    [
        0.441541168218,
        -0.302037433069,
        -0.359585550460,
        0.467633645636,
    ],
    [
        0.020180959718,
        -0.319371915124,
        -0.132144043845,
        0.013253537480,
    ],
    [
        0.247913987778,
        0.769144311187,
        -0.062327157390,
        0.258919792676,
    ],
    [
        -0.108242844542,
        -2.245467380563,
        -1.465712993533,
        -0.116053302443,
    ],
    [
        -1.732972548777,
        3.344603224282,
        0.012965556034,
        -1.786194583710,
    ],
    [
        -0.036798971836,
        0.387229150102,
        0.720445197738,
        -0.039994650984,
    ],
    [
        -0.895781329214,
        2.690986542986,
        0.790924988248,
        -0.834146100610,
    ],
    [
        0.015295094432,
        0.029975625372,
        -0.010821800392,
        0.015750470121,
    ],
    [
        -0.000012568546,
        0.000041495081,
        0.000067346720,
        -0.000011836267,
    ],
    [
        0.000000000050,
        0.000000000046,
        0.000000000001,
        0.000000000051,
    ],
];
const PROXY_ANCHOR_BY_PROXY: [[f64; 4]; 5] = [
    [
        0.106606825485,
        -0.267527251296,
        -0.294509064079,
        0.111757538851,
    ],
    [
        -0.468258624042,
        1.783745929854,
        -1.202281367232,
        -0.478215391986,
    ],
    [
        -5.173046482886,
        1.264278341844,
        5.851100687705,
        -5.102677447003,
    ],
    [
        -0.123270607735,
        -1.292160126702,
        -0.234855106206,
        -0.116711999689,
    ],
    [
        -0.325907455770,
        0.846443523602,
        -0.478387225611,
        -0.415836967048,
    ],
];
