//! `proofmill doctor`

use std::fmt::Write;
use std::time::Duration;

use proofmill_accelerator::{
    Capabilities, Device, Error, Group, ScalarField, TransformKind, Work, devices,
};
use proofmill_api::engine::proto::DeviceStatus;
use proofmill_engine::{default_budget, usable_memory};
use proofmill_kernels::{INSTRUCTION_SET_VARIABLE, InstructionSet};
use proofmill_sandbox::Survey;
use proofmill_telemetry::console_line;
use serde_json::{Value, json};

use super::engine::{bytes, connect, refused};
use crate::args::doctor::Doctor;
use crate::args::engine::EngineArg;
use crate::devices::Devices;
use crate::failure::Failure;
use crate::output;
use crate::stages::milliseconds;

/// Base-two logarithm of the sizes that are measured: those of a circuit with a million constraints.
const MEASURED_SIZE_LOG: u32 = 20;

/// Findings about this machine.
struct Report {
    kernels: InstructionSet,
    /// Faster instruction sets, each with the reason why it is not used.
    faster: Vec<(InstructionSet, String)>,
    threads: usize,
    memory: Option<u64>,
    budget: Option<u64>,
    sandbox: Survey,
    devices: Vec<DeviceReport>,
    engine: Option<EngineReport>,
}

/// The devices of an engine, as it says.
struct EngineReport {
    address: String,
    devices: Vec<DeviceStatus>,
}

/// A device and its measurements, or the error that makes it unusable.
struct DeviceReport {
    /// The name, where the device cannot be asked for it.
    fallback_name: String,
    caps: Option<Capabilities>,
    costs: Costs,
    why: Option<Error>,
}

/// Times of one multi-scalar multiplication and one transform of size 2^[`MEASURED_SIZE_LOG`], by group and by field.
#[derive(Default)]
struct Costs {
    /// With the base-two logarithm of the points.
    products: Vec<(Group, u32, Duration)>,
    transforms: Vec<(ScalarField, Duration)>,
}

pub(crate) async fn run(args: &Doctor) -> Result<(), Failure> {
    let engine = EngineReport::of(args).await?;
    let mut report = Report::of_this_machine(args)?;
    report.engine = engine;
    if args.json {
        output::line(report.to_json().to_string())?;
    } else {
        output::raw(output::plain(&report.shown()).as_bytes())?;
    }
    if report.devices.iter().any(DeviceReport::works) {
        return Ok(());
    }
    Err(Failure::new("no device works"))
}

// === impl Report ===

impl Report {
    fn of_this_machine(args: &Doctor) -> Result<Self, Failure> {
        let kernels = InstructionSet::from_environment().map_err(|error| {
            Failure::new(error).help(format!(
                "unset {INSTRUCTION_SET_VARIABLE} to use the fastest one of this processor"
            ))
        })?;
        let faster = InstructionSet::ALL
            .into_iter()
            .skip_while(|set| *set != kernels)
            .skip(1)
            .map(|set| (set, reason_not_used(set)))
            .collect();
        let found = devices()
            .into_iter()
            .map(|device| ("cuda".to_owned(), device));
        let zkpus = args.devices.as_ref().map_or_else(Vec::new, Devices::zkpus);
        Ok(Self {
            kernels,
            faster,
            threads: rayon::current_num_threads(),
            memory: usable_memory(),
            budget: default_budget(),
            sandbox: Survey::take(),
            devices: found
                .chain(zkpus)
                .map(|(name, device)| DeviceReport::of(name, device, args.quick))
                .collect(),
            engine: None,
        })
    }

    fn to_json(&self) -> Value {
        let faster =
            |(set, why): &(InstructionSet, String)| json!({ "name": set.to_string(), "why": why });
        json!({
            "kernels": {
                "used": self.kernels.to_string(),
                "not_used": self.faster.iter().map(faster).collect::<Value>(),
            },
            "threads": self.threads,
            "memory": { "usable_bytes": self.memory, "engine_budget_bytes": self.budget },
            "sandbox": sandbox_json(&self.sandbox),
            "devices": self.devices.iter().map(DeviceReport::to_json).collect::<Value>(),
            "engine": self.engine.as_ref().map(EngineReport::to_json),
        })
    }

    /// The report as text.
    fn shown(&self) -> String {
        let size = |count: Option<u64>| count.map_or_else(|| "unknown".to_owned(), bytes);
        let mut lines = format!("kernels   {} on {} threads\n", self.kernels, self.threads);
        for (set, why) in &self.faster {
            lines += &format!("          not {set}, which is faster: {why}\n");
        }
        lines += &format!(
            "memory    {} usable; an engine's budget is {} unless --budget says otherwise\n",
            size(self.memory),
            size(self.budget)
        );
        lines += &sandbox_shown(&self.sandbox);
        for device in &self.devices {
            lines += "\n";
            lines += &device.shown();
        }
        if let Some(engine) = &self.engine {
            lines += "\n";
            lines += &engine.shown();
        }
        lines
    }
}

fn sandbox_json(sandbox: &Survey) -> Value {
    let group = sandbox.cgroup.as_ref();
    json!({
        "basic": { "works": sandbox.basic.is_none(), "why": sandbox.basic },
        "strict": { "works": sandbox.strict.is_none(), "why": sandbox.strict },
        "landlock_abi": sandbox.landlock,
        "cgroup": {
            "path": group.ok().map(|path| path.display().to_string()),
            "why": group.err().map(ToString::to_string),
        },
    })
}

/// Report on the confinement of the programs of stages and sinks on this machine.
fn sandbox_shown(sandbox: &Survey) -> String {
    let mut lines = match &sandbox.basic {
        None => "sandbox   programs gain no rights (no_new_privs)\n".to_owned(),
        Some(why) => format!("sandbox   PROGRAMS CANNOT BE STARTED: {why}\n"),
    };
    lines += &match (&sandbox.strict, sandbox.landlock) {
        (Some(why), _) => format!("          no strict programs: {why}\n"),
        (None, Some(version)) if version < 6 => format!(
            "          strict programs, which may signal others of this user's processes: \
             Landlock {version} (version 6 prevents it)\n"
        ),
        (None, Some(version)) => format!("          strict programs: Landlock {version}\n"),
        (None, None) => "          strict programs\n".to_owned(),
    };
    lines += &match &sandbox.cgroup {
        Ok(path) => format!(
            "          their memory and processes are bounded together, in {}\n",
            path.display()
        ),
        Err(why) => {
            format!("          nothing bounds their memory and processes together: {why}\n")
        }
    };
    lines
}

/// The reason why a faster instruction set is not used: a missing processor feature, or the environment variable.
fn reason_not_used(set: InstructionSet) -> String {
    match &set.missing()[..] {
        [] => format!("{INSTRUCTION_SET_VARIABLE} selects another one"),
        missing => format!("this processor has no {}", missing.join(", ")),
    }
}

// === impl EngineReport ===

impl EngineReport {
    /// Asks the engine that the arguments name.
    async fn of(args: &Doctor) -> Result<Option<Self>, Failure> {
        let Some(address) = &args.engine else {
            return Ok(None);
        };
        let engine = EngineArg {
            engine: address.clone(),
            credentials: args.credentials.clone(),
        };
        let client = connect(&engine).await?;
        let status = client.status().await.map_err(|error| refused(&error))?;
        Ok(Some(Self {
            address: address.to_string(),
            devices: status.devices,
        }))
    }

    fn to_json(&self) -> Value {
        let device = |it: &DeviceStatus| {
            json!({
                "name": it.name,
                "works": it.broken.is_none(),
                "why": it.broken,
                "products": it.products,
                "failures": it.failures,
            })
        };
        json!({
            "address": self.address,
            "devices": self.devices.iter().map(device).collect::<Value>(),
        })
    }

    fn shown(&self) -> String {
        let mut lines = format!("engine    {}\n", self.address);
        for device in &self.devices {
            lines += &match &device.broken {
                Some(why) => format!("          {} FENCED: {why}\n", device.name),
                None => format!("          {} in use\n", device.name),
            };
        }
        lines
    }
}

// === impl DeviceReport ===

impl DeviceReport {
    fn of(name: String, device: Result<Box<dyn Device>, Error>, quick: bool) -> Self {
        let mut found = Self {
            fallback_name: name,
            caps: None,
            costs: Costs::default(),
            why: None,
        };
        let measured = device.and_then(|device| {
            let caps = found.caps.insert(device.caps().clone());
            if !quick {
                found.costs = Costs::of(&*device, caps)?;
            }
            device.failure().map_or(Ok(()), Err)
        });
        found.why = measured.err();
        found
    }

    fn works(&self) -> bool {
        self.why.is_none()
    }

    fn name(&self) -> &str {
        self.caps
            .as_ref()
            .map_or(&self.fallback_name, |caps| &caps.name)
    }

    fn to_json(&self) -> Value {
        let caps = self.caps.as_ref();
        let product = |(group, log, cost): &(Group, u32, Duration)| json!({ "group": group.name(), "points": 1_u64 << log, "ms": milliseconds(*cost) });
        let transform = |(field, cost): &(ScalarField, Duration)| json!({ "field": field.name(), "values": 1_u64 << MEASURED_SIZE_LOG, "ms": milliseconds(*cost) });
        let names = |caps: &Capabilities| {
            let groups: Vec<_> = caps.groups.iter().map(|group| group.name()).collect();
            let fields: Vec<_> = caps.fields.iter().map(|field| field.name()).collect();
            (groups, fields)
        };
        let (groups, fields) = caps.map(names).unwrap_or_default();
        json!({
            "name": self.name(),
            "works": self.works(),
            "why": self.why.as_ref().map(ToString::to_string),
            "memory_bytes": caps.and_then(|caps| caps.memory),
            "groups": groups,
            "fields": fields,
            "products": self.costs.products.iter().map(product).collect::<Value>(),
            "transforms": self.costs.transforms.iter().map(transform).collect::<Value>(),
        })
    }

    fn shown(&self) -> String {
        let mut lines = format!("device    {}", self.name());
        match self.caps.as_ref().map(|caps| caps.memory) {
            Some(Some(memory)) => lines += &format!(", {} of its own\n", bytes(memory)),
            Some(None) => lines += ", in the host's memory\n",
            None => lines += "\n",
        }
        if let Some(why) = &self.why {
            return lines + &format!("          NOT USED: {why}\n");
        }
        let Some(caps) = &self.caps else {
            return lines;
        };
        let (products, transforms) = (&self.costs.products, &self.costs.transforms);
        if products.is_empty() && transforms.is_empty() {
            let groups: Vec<_> = caps.groups.iter().map(|group| group.name()).collect();
            let fields: Vec<_> = caps.fields.iter().map(|field| field.name()).collect();
            lines += &format!("          products over {}\n", groups.join(", "));
            if !fields.is_empty() {
                lines += &format!("          transforms over {}\n", fields.join(", "));
            }
            return lines;
        }
        for (group, log, cost) in products {
            lines += &row("product", *log, "points", group.name(), *cost);
        }
        for (field, cost) in transforms {
            lines += &row(
                "transform",
                MEASURED_SIZE_LOG,
                "values",
                field.name(),
                *cost,
            );
        }
        lines
    }
}

fn row(work: &str, log: u32, of: &str, over: &str, cost: Duration) -> String {
    let mut line = String::new();
    // Writing into a string cannot fail.
    let _ = writeln!(
        line,
        "          {work:<9} of 2^{log} {of} {over:<12} {:>10.1} ms",
        milliseconds(cost)
    );
    line
}

// === impl Costs ===

impl Costs {
    fn of(device: &dyn Device, caps: &Capabilities) -> Result<Self, Error> {
        if caps.memory.is_some() {
            console_line(format!(
                "{}: measuring; kernels that were never used are compiled first, for some minutes",
                caps.name
            ));
        }
        let product = |group: &Group| {
            let work = |log: u32| Work::Msm {
                group: *group,
                points: 1 << log,
            };
            // A device with little memory cannot take the usual size.
            let log = (0..=MEASURED_SIZE_LOG)
                .rev()
                .find(|log| device.check(work(*log)).is_ok())
                .unwrap_or(MEASURED_SIZE_LOG);
            Ok((*group, log, device.cost(work(log))?))
        };
        let transform = |field: &ScalarField| {
            let work = Work::Transform {
                field: *field,
                kind: TransformKind::Forward,
                size_log: MEASURED_SIZE_LOG,
            };
            Ok((*field, device.cost(work)?))
        };
        Ok(Self {
            products: caps
                .groups
                .iter()
                .map(product)
                .collect::<Result<_, Error>>()?,
            transforms: caps
                .fields
                .iter()
                .map(transform)
                .collect::<Result<_, Error>>()?,
        })
    }
}
