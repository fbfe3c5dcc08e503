//! What most subcommands need: the words in which they are written.

pub(crate) use anyhow::{Context, Result, bail, ensure};

pub(crate) use crate::Command;
pub(crate) use crate::answer::{Answer, Answered, JsonForms, Lines, answer, record};
pub(crate) use crate::args::{Common, InputArgs, MachineArgs, clock_name};
pub(crate) use crate::ask::{File, Form, Group, Output, Switch, Word, choices, forms, options};
pub(crate) use crate::caller::Caller;
pub(crate) use crate::files::{FileKind, Source};
pub(crate) use crate::forms::{
    Budget, ClockName, Core, Count, Deadline, KindName, OpName, PortNames, Ranks, RootName, Seed,
    Size, Sizes, Tolerance, TypeName,
};
pub(crate) use crate::input::{Input, ScheduleInfo, show_cost};
pub(crate) use crate::memory::{LARGE_SCHEDULE, ensure_memory};
pub(crate) use crate::output::{self, Skipped};
pub(crate) use crate::progress::WorkBar;
pub(crate) use crate::ranges::Ranges;
pub(crate) use crate::site::{Engine, Site};
pub(crate) use crate::task::PlanTask;
pub(crate) use crate::units::{Number, Unit, counted, number, or_dash, show_bytes, show_ns};
pub(crate) use oneport::plan::registry::Algorithm;
pub(crate) use oneport::plan::{Segments, registry};
pub(crate) use oneport::run::{Clock, Element, ElementType, Place, Processes};
pub(crate) use oneport::{CostModel, Error, Kind, Ports, Request, Schedule};
pub(crate) use oneport_pictures::{Caption, Columns, SweepRow};
pub(crate) use schemars::JsonSchema;
pub(crate) use serde::Serialize;
pub(crate) use std::collections::{BTreeMap, BTreeSet};
pub(crate) use std::fmt::Write;
pub(crate) use std::path::{Path, PathBuf};
pub(crate) use std::sync::Arc;
pub(crate) use std::sync::atomic::{AtomicBool, Ordering};
pub(crate) use std::time::Duration;
