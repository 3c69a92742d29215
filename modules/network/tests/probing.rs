//! `net_test` and `net_wait`, on recordings of programs that ask other machines.
#![allow(clippy::unwrap_used)]

use linux_sysadmin_sdk::Problem;
use linux_sysadmin_sdk::testkit::FakeTarget;
use module_network::module;
use serde_json::{Value, json};

const TLS: &str = include_str!("data/tls.txt");
const THERE: &str = include_str!("data/explain/firewall_there.txt");

fn call(target: FakeTarget, tool: &str, arguments: Value) -> Result<(Value, Vec<String>), Problem> {
    target.call(&module(), tool, arguments).map(|(data, reply)| (data, reply.notes))
}

fn test(target: FakeTarget, arguments: Value) -> (Value, Vec<String>) {
    call(target, "net_test", arguments.clone()).unwrap_or_else(|problem| panic!("{arguments}: {problem:?}"))
}

fn code(target: FakeTarget, tool: &str, arguments: Value) -> String {
    match call(target, tool, arguments.clone()) {
        Err(problem) => problem.code,
        Ok((data, _)) => panic!("{arguments}: {data}"),
    }
}

/// A target that finds these addresses of `db.example`.
fn resolving(addresses: &[&str]) -> FakeTarget {
    let lines: String =
        addresses.iter().map(|address| format!("{address}  STREAM db.example\n{address}  DGRAM\n")).collect();
    bare().answer(&["timeout", "8", "getent", "ahosts", "--", "db.example"], 0, lines, "")
}

/// A target that has none of the programs by which other machines are asked.
fn bare() -> FakeTarget {
    ["nc", "curl", "ping", "openssl", "dig"].into_iter().fold(FakeTarget::new(), FakeTarget::without_program)
}

fn nc<'a>(address: &'a str, port: &'a str) -> Vec<&'a str> {
    vec!["nc", "-z", "-n", "-v", "-w", "4", "--", address, port]
}

#[test]
fn a_ping_tells_loss_and_round_trip() {
    let (data, _) =
        test(FakeTarget::new().transcript(THERE), json!({"test": "ping", "target": "198.51.100.20"}));
    assert_eq!(
        data,
        json!([{"address": "198.51.100.20", "sent": 3, "received": 3, "loss_percent": 0,
                "rtt_ms": {"min": 0.11, "avg": 0.117, "max": 0.123}}])
    );
}

#[test]
fn a_trace_tells_its_hops() {
    let (data, _) =
        test(FakeTarget::new().transcript(THERE), json!({"test": "trace", "target": "198.51.100.20"}));
    assert_eq!(
        data,
        json!({"address": "198.51.100.20", "reached": true, "by": "traceroute",
               "hops": [{"hop": 1, "address": "192.0.2.1", "rtt_ms": 0.009}, {"hop": 2, "address": "198.51.100.20", "rtt_ms": 0.004}]})
    );
    // timeout(1) says that there is no such program.
    let absent = |program: &'static str, rest: &[&'static str]| {
        (
            [&["timeout", "50", program][..], rest].concat(),
            format!("timeout: failed to run command '{program}'"),
        )
    };
    let mut target = FakeTarget::new();
    for (argv, said) in [
        absent("traceroute", &["-n", "-q", "1", "-w", "2", "-m", "20", "--", "192.0.2.1"]),
        absent("tracepath", &["-n", "-m", "20", "--", "192.0.2.1"]),
        absent("mtr", &["--json", "--no-dns", "--report-cycles", "1", "--max-ttl", "20", "--", "192.0.2.1"]),
    ] {
        target = target.answer(&argv, 127, "", &said);
    }
    let problem = call(target, "net_test", json!({"test": "trace", "target": "192.0.2.1"})).unwrap_err();
    assert_eq!(problem.code, "NO_PROGRAM");
    assert!(problem.message.contains("traceroute, tracepath, mtr"), "{problem:?}");
}

#[test]
fn each_address_of_a_name_is_tried() {
    let target = || {
        resolving(&["2001:db8::7", "192.0.2.7"])
            .answer(
                &nc("2001:db8::7", "443"),
                1,
                "",
                "nc: connect to 2001:db8::7 port 443 (tcp) failed: Network is unreachable\n",
            )
            .answer(&nc("192.0.2.7", "443"), 0, "", "Connection to 192.0.2.7 443 port [tcp/*] succeeded!\n")
    };
    let (data, _) = test(target(), json!({"test": "tcp", "target": "db.example", "port": 443}));
    let shown: Vec<_> =
        data.as_array().unwrap().iter().map(|one| (&one["address"], &one["result"])).collect();
    assert_eq!(
        shown,
        [(&json!("2001:db8::7"), &json!("network_unreachable")), (&json!("192.0.2.7"), &json!("open"))]
    );
    let (data, _) = test(target(), json!({"test": "tcp", "target": "db.example", "port": 443, "family": 4}));
    assert_eq!(data.as_array().unwrap().len(), 1);
}

#[test]
fn without_nc_curl_connects_and_without_both_they_are_named() {
    let curl = |at: &'static str| {
        [
            "curl",
            "--output",
            "/dev/null",
            "--silent",
            "--verbose",
            "--connect-timeout",
            "4",
            "--max-time",
            "5",
            at,
        ]
    };
    // Recorded with curl 7.88.1.
    let said = "*   Trying [2001:db8:2::20]:8080...\n* Connected to 2001:db8:2::20 (2001:db8:2::20) port 8080 (#0)\n* Time-out\n";
    let target = bare().answer(&curl("telnet://[2001:db8:2::20]:8080"), 28, "", said);
    let (data, _) = test(target, json!({"test": "tcp", "target": "[2001:db8:2::20]", "port": 8080}));
    assert_eq!(data[0]["result"], "open");
    // The nc of BusyBox knows none of the options.
    let target = FakeTarget::new()
        .answer(&nc("192.0.2.7", "80"), 1, "", "nc: invalid option -- 'z'\nBusyBox v1.35.0\n")
        .answer(
            &curl("telnet://192.0.2.7:80"),
            7,
            "",
            "* connect to 192.0.2.7 port 80 failed: Connection refused\n",
        );
    let (data, _) = test(target, json!({"test": "tcp", "target": "192.0.2.7", "port": 80}));
    assert_eq!(data[0]["result"], "refused");
    let problem =
        call(bare(), "net_test", json!({"test": "tcp", "target": "192.0.2.7", "port": 80})).unwrap_err();
    assert_eq!(problem.code, "NO_PROGRAM");
    assert!(problem.message.contains("nc, curl") && problem.remediation[0].contains("netcat"), "{problem:?}");
    // timeout(1) says that there is no such program.
    let openssl = [
        "timeout",
        "8",
        "openssl",
        "s_client",
        "-showcerts",
        "-noservername",
        "-verify_ip",
        "192.0.2.7",
        "-host",
        "192.0.2.7",
        "-port",
        "443",
    ];
    let said = "timeout: failed to run command 'openssl': No such file or directory\n";
    for (tool, program) in [("ping", "ping"), ("tls", "openssl"), ("dns", "dig")] {
        let arguments = json!({"test": tool, "target": "192.0.2.7"});
        let target =
            bare().file("/etc/resolv.conf", "nameserver 192.0.2.53\n").answer(&openssl, 127, "", said);
        let problem = call(target, "net_test", arguments).unwrap_err();
        assert_eq!(problem.code, "NO_PROGRAM");
        assert!(problem.message.contains(program), "{problem:?}");
    }
}

const READ: [&str; 9] =
    ["openssl", "x509", "-noout", "-startdate", "-enddate", "-ext", "subjectAltName", "-nameopt", "RFC2253"];

#[test]
fn a_certificate_has_its_chain_its_names_and_its_days() {
    // Recorded with OpenSSL 3.0.19.
    let read = "notBefore=Nov 27 14:13:45 2026 GMT\nnotAfter=Dec 17 14:13:45 2026 GMT\nX509v3 Subject Alternative Name: \n    DNS:db.example, DNS:*.db.example, IP Address:198.51.100.20\n";
    let target = |now: f64| {
        FakeTarget::new()
            .answer(
                &["timeout", "8", "getent", "ahosts", "--", "db.example"],
                0,
                "198.51.100.20 STREAM db.example\n",
                "",
            )
            .transcript(TLS)
            .answer(&READ, 0, read, "")
            .at(now)
    };
    let arguments = || json!({"test": "tls", "target": "db.example", "port": 8443});
    let (data, _) = test(target(1_795_800_000.0), arguments());
    assert_eq!(
        data,
        json!({
            "address": "198.51.100.20", "is_trusted": false, "faults": ["unable to get local issuer certificate"],
            "protocol": "TLSv1.3", "names": "db.example, *.db.example, 198.51.100.20", "days_left": 19,
            "chain": [
                {"subject": "CN = db.example, O = \"Acme, \\\"Inc\\\"\"", "issuer": "CN = Test Intermediate",
                 "not_before": "2026-11-27T14:13:45Z", "not_after": "2026-12-17T14:13:45Z"},
                {"subject": "CN = Test Intermediate", "issuer": "CN = Test Root",
                 "not_before": "2026-11-27T14:13:44Z", "not_after": "2031-11-01T14:13:44Z"},
            ],
        })
    );
    let (data, _) = test(target(1_797_000_000.0), arguments());
    assert_eq!(data["faults"][1], "it ends in 5 days");
}

#[test]
fn a_port_on_which_tls_is_asked_for_is_asked() {
    let argv = [
        "timeout",
        "8",
        "openssl",
        "s_client",
        "-showcerts",
        "-starttls",
        "smtp",
        "-noservername",
        "-verify_ip",
        "192.0.2.7",
        "-host",
        "192.0.2.7",
        "-port",
        "25",
    ];
    let said = "CONNECTED(00000003)\n---\nCertificate chain\n 0 s:CN = mail.example\n   i:CN = mail.example\n-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\nServer certificate\nNew, TLSv1.2, Cipher is X\nVerify return code: 0 (ok)\n";
    let read = "notBefore=Nov 27 14:13:45 2020 GMT\nnotAfter=Dec 17 14:13:45 2020 GMT\n";
    let target = FakeTarget::new().answer(&argv, 0, said, "").answer(&READ, 0, read, "").at(1_795_800_000.0);
    let (data, _) = test(target, json!({"test": "tls", "target": "192.0.2.7", "port": 25}));
    // OpenSSL before 3.0 doesn't tell the time in the chain.
    assert_eq!(data["chain"][0]["not_after"], "2020-12-17T14:13:45Z");
    assert_eq!((&data["starttls"], &data["is_trusted"]), (&json!("smtp"), &json!(true)));
    assert!(data["days_left"].as_i64().unwrap() < 0);
    let refused = FakeTarget::new().answer(&argv, 1, "", "connect:errno=111\nConnection refused\n");
    assert_eq!(
        code(refused, "net_test", json!({"test": "tls", "target": "192.0.2.7", "port": 25})),
        "TLS_FAILED"
    );
}

fn dig<'a>(record: &'a str, name: &'a str, server: &'a str) -> Vec<&'a str> {
    vec![
        "dig",
        "+noall",
        "+comments",
        "+answer",
        "+stats",
        "+tries=1",
        "+time=2",
        "-t",
        record,
        "-q",
        name,
        server,
    ]
}

/// After the manual of BIND 9.18.
fn answered(status: &str, records: &str) -> String {
    format!(
        ";; Got answer:\n;; ->>HEADER<<- opcode: QUERY, status: {status}, id: 1\n;; flags: qr rd ra; QUERY: 1\n\n{records};; Query time: 3 msec\n"
    )
}

#[test]
fn an_answer_has_its_way_through_files_and_servers() {
    let target = || {
        resolving(&["192.0.2.7"])
            .file("/etc/resolv.conf", "nameserver 192.0.2.53\nnameserver 192.0.2.54\n")
            .file("/etc/nsswitch.conf", "hosts: files dns\n")
            .file("/etc/hosts", "127.0.0.1 localhost\n")
            .answer(&dig("A", "db.example", "@192.0.2.53"), 0, answered("NXDOMAIN", ""), "")
            .answer(
                &dig("A", "db.example", "@192.0.2.54"),
                0,
                answered("NOERROR", "db.example.\t60\tIN\tA\t192.0.2.7\n"),
                "",
            )
    };
    let (data, notes) = test(target(), json!({"test": "dns", "target": "db.example"}));
    assert_eq!(
        data,
        json!({"addresses": ["192.0.2.7"], "sources": "files dns", "servers": [
            {"server": "192.0.2.53", "status": "NXDOMAIN", "ms": 3},
            {"server": "192.0.2.54", "status": "NOERROR", "records": ["db.example. 60 IN A 192.0.2.7"], "ms": 3}]})
    );
    assert_eq!(
        notes,
        ["the servers don't agree about db.example: programs get what the first one that answers says"]
    );
    let (data, notes) = test(
        target().file("/etc/hosts", "192.0.2.7 db.example\n"),
        json!({"test": "dns", "target": "db.example"}),
    );
    assert_eq!(data["hosts"][0]["line"], 1);
    assert_eq!(notes[1], "/etc/hosts has db.example, so that no server is asked");
    // One server alone.
    let (data, _) = test(target(), json!({"test": "dns", "target": "db.example", "server": "192.0.2.54"}));
    assert!(data.get("addresses").is_none() && data["servers"].as_array().unwrap().len() == 1);
    // Without dig, what programs get is told all the same.
    let target = resolving(&["192.0.2.7"]).file("/etc/resolv.conf", "nameserver 192.0.2.53\n");
    let (data, notes) = test(target, json!({"test": "dns", "target": "db.example"}));
    assert_eq!(data, json!({"addresses": ["192.0.2.7"]}));
    assert!(notes[0].contains("dig"), "{notes:?}");
}

#[test]
fn other_records_and_names_of_addresses_are_asked_of_the_servers() {
    let conf = || FakeTarget::new().file("/etc/resolv.conf", "nameserver 192.0.2.53\n");
    let target = conf().answer(
        &dig("TXT", "_dmarc.db.example", "@192.0.2.53"),
        0,
        answered("NOERROR", "_dmarc.db.example. 60 IN TXT \"v=DMARC1; p=none\"\n"),
        "",
    );
    let (data, _) = test(target, json!({"test": "dns", "target": "_dmarc.db.example", "record": "txt"}));
    assert_eq!(data["servers"][0]["records"][0], "_dmarc.db.example. 60 IN TXT \"v=DMARC1; p=none\"");
    let target = conf().answer(
        &dig("PTR", "7.2.0.192.in-addr.arpa", "@192.0.2.53"),
        0,
        answered("NOERROR", "7.2.0.192.in-addr.arpa. 60 IN PTR db.example.\n"),
        "",
    );
    let (data, _) = test(target, json!({"test": "dns", "target": "192.0.2.7"}));
    assert!(data["servers"][0]["records"][0].as_str().unwrap().ends_with("db.example."));
}

#[test]
fn what_no_test_can_take_is_refused() {
    for (arguments, expected) in [
        (json!({"test": "ping", "target": "-c1"}), "INVALID_NAME"),
        (json!({"test": "ping", "target": ""}), "INVALID_NAME"),
        (json!({"test": "ping", "target": "a; id"}), "INVALID_NAME"),
        (json!({"test": "tcp", "target": "http://db.example", "port": 80}), "INVALID_NAME"),
        (json!({"test": "ping", "target": "192.0.2.0/24"}), "INVALID_NAME"),
        (json!({"test": "tcp", "target": "192.0.2.7"}), "INVALID_ARGUMENTS"),
        (json!({"test": "tcp", "target": "192.0.2.7", "port": 0}), "INVALID_PORT"),
        (json!({"test": "tls", "target": "192.0.2.7", "port": 65536}), "INVALID_PORT"),
        (json!({"test": "ping", "target": "192.0.2.7", "port": 80}), "INVALID_ARGUMENTS"),
        (json!({"test": "ping", "target": "192.0.2.7", "record": "A"}), "INVALID_ARGUMENTS"),
        (
            json!({"test": "tcp", "target": "192.0.2.7", "port": 80, "server": "192.0.2.53"}),
            "INVALID_ARGUMENTS",
        ),
        (json!({"test": "dns", "target": "db.example", "record": "-x"}), "INVALID_RECORD"),
        (json!({"test": "dns", "target": "db.example", "record": "ANY"}), "INVALID_RECORD"),
        (json!({"test": "dns", "target": "db.example", "server": "ns.example"}), "INVALID_SERVER"),
        (json!({"test": "dns", "target": "@192.0.2.53"}), "INVALID_NAME"),
        (json!({"test": "ping", "target": "192.0.2.7", "family": 6}), "INVALID_FAMILY"),
        (json!({"test": "ping", "target": "db.example", "family": 5}), "INVALID_FAMILY"),
        (json!({"test": "udp", "target": "db.example"}), "INVALID_ARGUMENTS"),
    ] {
        assert_eq!(code(FakeTarget::new(), "net_test", arguments.clone()), expected, "{arguments}");
    }
    let unknown = FakeTarget::new().answer(&["timeout", "8", "getent", "ahosts", "--", "nosuch"], 2, "", "");
    assert_eq!(code(unknown, "net_test", json!({"test": "ping", "target": "nosuch"})), "NAME_NOT_FOUND");
    let silent = FakeTarget::new().answer(&["timeout", "8", "getent", "ahosts", "--", "nosuch"], 124, "", "");
    assert_eq!(code(silent, "net_test", json!({"test": "ping", "target": "nosuch"})), "NAME_NO_ANSWER");
}

#[test]
fn it_waits_until_the_port_is_as_asked_for_and_no_longer_than_asked_for() {
    let open = || {
        FakeTarget::new().answer(
            &nc("127.0.0.1", "8080"),
            0,
            "",
            "Connection to 127.0.0.1 8080 port [tcp/*] succeeded!\n",
        )
    };
    let closed = || {
        FakeTarget::new().answer(
            &nc("127.0.0.1", "8080"),
            1,
            "",
            "nc: connect to 127.0.0.1 port 8080 (tcp) failed: Connection refused\n",
        )
    };
    let wait = |target: FakeTarget, arguments: Value| call(target, "net_wait", arguments).unwrap().0;
    let data = wait(open(), json!({"port": 8080}));
    assert_eq!((&data["done"], &data["attempts"], &data["waited_s"]), (&json!(true), &json!(1), &json!(0.0)));
    assert_eq!(wait(closed(), json!({"port": 8080, "closed": true}))["done"], true);
    let data = wait(closed(), json!({"port": 8080, "seconds": 5}));
    assert_eq!(
        (&data["done"], &data["attempts"], &data["waited_s"]),
        (&json!(false), &json!(6), &json!(5.0))
    );
    assert!(data["next"].as_str().unwrap().starts_with("net_connections(port=8080)"));
    assert_eq!(wait(open(), json!({"port": 8080, "closed": true, "seconds": 1}))["done"], false);
    // Without a program that connects, who listens on this machine is known all the same.
    let listening =
        |at: &str| bare().answer(&["ss", "-Htunap"], 0, format!("tcp LISTEN 0 5 {at} 0.0.0.0:*\n"), "");
    for (at, is_open) in
        [("0.0.0.0:8080", true), ("127.0.0.1:8080", true), ("192.0.2.7:8080", false), ("*:81", false)]
    {
        assert_eq!(wait(listening(at), json!({"port": 8080, "seconds": 1}))["done"], is_open, "{at}");
    }
    assert_eq!(
        code(listening("*:1"), "net_wait", json!({"port": 8080, "target": "192.0.2.7"})),
        "NO_PROGRAM"
    );
    // A name that nobody knows yet may be known later.
    let unknown = FakeTarget::new().answer(&["timeout", "8", "getent", "ahosts", "--", "db"], 2, "", "");
    let data = wait(unknown, json!({"port": 8080, "target": "db", "seconds": 2}));
    assert_eq!(
        (&data["last"], &data["next"]),
        (
            &json!("the name has no address"),
            &json!("net_explain(target=db, port=8080) tells what stands in the way")
        )
    );
    for (arguments, expected) in [
        (json!({"port": 0}), "INVALID_PORT"),
        (json!({"port": 80, "seconds": 0}), "INVALID_ARGUMENTS"),
        (json!({"port": 80, "seconds": 301}), "INVALID_ARGUMENTS"),
        (json!({"port": 80, "target": "-x"}), "INVALID_NAME"),
        (json!({}), "INVALID_ARGUMENTS"),
    ] {
        assert_eq!(code(FakeTarget::new(), "net_wait", arguments.clone()), expected, "{arguments}");
    }
}
