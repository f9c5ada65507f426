//! `proofmill zkpu`: a model that is served, identified and measured.

use rustix::process::Signal;

use crate::support::{Running, folder, proofmill, run};

#[test]
fn a_model_is_served_identified_and_measured() {
    let folder = folder();
    let here = folder.path();
    let serve = ["zkpu", "serve", "--listen", "127.0.0.1:0", "--memory"];
    let served = Running::start(proofmill(here).args(serve).arg("64MiB"));
    let line = served.line("is served over NVMe/TCP on");
    let after = line.split_once("NVMe/TCP on ").expect("an address").1;
    let (address, subsystem) = after.split_once(", subsystem ").expect("a subsystem");

    let identify = ["zkpu", "identify", address, "--json"];
    let found = run(here, identify).succeeded().json();
    let capability = &found["capability"];
    assert_eq!(found["subsystem"], subsystem);
    assert_eq!(capability["memory_bytes"], 64 << 20);
    assert_eq!(capability["functional_model"], true);
    assert_eq!(found["health"]["jobs"]["completed"], 0);

    // The products are compared with the processors' by the command itself.
    let bench = ["zkpu", "bench", address, "--subsystem", subsystem];
    let sizes = ["--log-n", "0,5,8", "--rounds", "2", "--json"];
    let measured = run(here, bench.iter().chain(&sizes)).succeeded().json();
    let products = measured["products"].as_array().expect("a list");
    assert_eq!(products.len(), 3);
    let cycles = products[2]["cycles_a_point"].as_f64().expect("a number");
    assert!((10.0..100.0).contains(&cycles), "{cycles} cycles a point");

    let found = run(here, identify).succeeded().json();
    let health = &found["health"];
    assert_eq!(
        (&health["jobs"]["completed"], &health["jobs"]["failed"]),
        (&6.into(), &0.into())
    );
    assert_eq!(health["points"], 2 * (1 + 32 + 256));
    let shown = run(here, ["zkpu", "identify", address]).succeeded();
    assert!(shown.stdout.contains("64.0 MiB"), "{shown:?}");

    // The suite finds nothing wrong, and says what it ran.
    let conform = ["zkpu", "conform", address, "--max-log-n"];
    let found = run(here, conform.iter().chain(&["8", "--json"])).succeeded();
    let found = found.json();
    let cases = found["cases"].as_array().expect("a list");
    assert!(cases.len() > 120, "{} cases", cases.len());
    assert_eq!(
        (&found["failed"], &found["passed"]),
        (&0.into(), &cases.len().into())
    );
    for group in ["protocol", "products"] {
        assert!(cases.iter().any(|case| case["group"] == group), "{group}");
    }
    let shown = run(here, conform.iter().chain(&["5"])).succeeded().stdout;
    assert!(
        shown.contains("  ok      ") && shown.contains(" 0 failed"),
        "{shown}"
    );

    served.signal(Signal::TERM);
    let (status, _) = served.end();
    assert!(status.success(), "{status}");
    run(here, ["zkpu", "identify", address]).failed(1, "proofmill zkpu serve");
}

#[test]
fn mistakes_are_explained() {
    let folder = folder();
    let here = folder.path();
    let serve = |more: &[&str]| run(here, ["zkpu", "serve"].iter().chain(more));
    serve(&["--listen", "0.0.0.0:0"]).failed(1, "--allow-remote");
    serve(&["--memory", "5000B"]).failed(2, "a multiple of 4 KiB");
    serve(&["--adders", "3"]).failed(2, "3 is not in 1..=2");
    serve(&["--rtl"]).failed(1, "make -C hardware/zkpu soc-real-sim");
    serve(&["--rtl", "--adders", "1"]).failed(2, "--adders");
    serve(&["--firmware", "image"]).failed(2, "--rtl");
    run(here, ["zkpu", "identify", "127.0.0.1"]).failed(2, "HOST:PORT");
    run(here, ["zkpu", "conform", "127.0.0.1:1"]).failed(1, "the device at 127.0.0.1:1");
    let large = ["zkpu", "conform", "127.0.0.1:1", "--max-log-n", "21"];
    run(here, large).failed(2, "21 is not in 5..=20");
    run(here, ["doctor", "--devices", "nvme:here"]).failed(2, "HOST:PORT");
    run(here, ["zkpu", "bench", "127.0.0.1:1"]).failed(1, "the device at 127.0.0.1:1");
}
