//! `proofmill doctor`.

use crate::support::{finish, folder, proofmill, run};

#[test]
fn doctor_reports_working_devices_and_the_reasons_for_others() {
    let folder = folder();
    let report = run(folder.path(), ["doctor", "--json"]).succeeded().json();
    assert!(report["threads"].as_u64().unwrap() > 0, "{report:#}");
    let usable = report["memory"]["usable_bytes"].as_u64().unwrap();
    let budget = report["memory"]["engine_budget_bytes"].as_u64().unwrap();
    assert_eq!(budget, usable / 4 * 3);

    let sandbox = &report["sandbox"];
    assert_eq!(sandbox["basic"]["works"], true, "{sandbox:#}");
    for way in ["basic", "strict"] {
        let works = sandbox[way]["works"].as_bool().unwrap();
        assert_eq!(works, sandbox[way]["why"].is_null(), "{sandbox:#}");
    }
    let cgroup = &sandbox["cgroup"];
    assert_ne!(
        cgroup["path"].is_null(),
        cgroup["why"].is_null(),
        "{cgroup:#}"
    );

    let devices = report["devices"].as_array().unwrap();
    for device in devices {
        let works = device["works"].as_bool().unwrap();
        assert_eq!(works, device["why"].is_null(), "{device:#}");
        if works {
            for (costs, of) in [("products", "groups"), ("transforms", "fields")] {
                let costs = device[costs].as_array().unwrap();
                assert_eq!(costs.len(), device[of].as_array().unwrap().len());
                assert!(costs.iter().all(|cost| cost["ms"].as_f64().unwrap() > 0.0));
            }
        }
    }
    let cpu = devices.last().unwrap();
    assert_eq!(cpu["works"], true, "{cpu:#}");
    assert!(
        devices.len() > 1,
        "cards, or why there are none: {report:#}"
    );
}

#[test]
fn the_chosen_kernels_are_shown_and_an_unknown_choice_is_refused() {
    let folder = folder();
    let with = |name: &str| {
        let mut program = proofmill(folder.path());
        finish(
            program
                .env("PROOFMILL_KERNELS", name)
                .args(["doctor", "--quick"]),
        )
    };
    let ran = with("portable").succeeded();
    assert!(ran.stdout.contains("portable on"), "{ran:?}");
    assert!(
        ran.stdout.contains("sandbox   programs gain no rights"),
        "{ran:?}"
    );
    assert!(ran.stdout.contains("not avx512ifma"), "{ran:?}");
    let ran = with("abacus");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("PROOFMILL_KERNELS"), "{ran:?}");
}
