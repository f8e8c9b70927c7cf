# SPDX-License-Identifier: Apache-2.0
"""What bench/peers makes of its rows: goals reached, lines on the terminal, docs/BENCHMARKS.md.

A row is a dictionary of one engine, model and number of threads: either "failure", the reason, or
median_ms, p10_ms, p90_ms, min_ms, load_ms, cold_ms, peak_mb, error and, of our own, flops, bytes,
weights_mb, sessions, new_shape and limits where they are known. limits: of the machine right after the
turns, in G a second, for the models whose goals compare with one.
"""
import csv
import math
import os
import platform
import re
import statistics
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
INEXACT = 1e-3  # error from which it is printed beside a time
LIMITS = {"fma": "f32 multiply-add", "bandwidth": "read memory"}
KEYS = {"time": "median_ms", "cold": "cold_ms", "plan": "cold_ms", "memory": "peak_mb",
        "weights": "weights_mb"}
FACTS = ("weights", "sessions", "new_shape")  # measures that own_worker --facts tells
STARTS = ("cold", "plan", "memory")  # measures of fresh processes
PROFILE_ROWS = 6


def read_goals(wanted):
    with open(HERE / "goals.tsv", encoding="utf-8", newline="") as file:
        lines = [line.lstrip("# ") for line in file if line.startswith("# group") or
                 not line.startswith("#")]
    goals = list(csv.DictReader(lines, delimiter="\t"))
    return [goal for goal in goals if wanted == "all" or goal["set"] == "short"]


def models_of(goals):
    """The models that the goals name, their own rivals too, each once."""
    names = [goal["model"] for goal in goals if goal["model"] != "*"]
    names += [goal["peers"][4:] for goal in goals if goal["peers"].startswith("own:")]
    return list(dict.fromkeys(names))


# ---- goals ----

def limits_of(text, threads):
    """The best figure of each kind in what bench/peak prints."""
    figures = re.findall(r"^(.*?)  +\S+ +(\d+) +([\d.]+) +[\d.]+$", text, re.M)
    kinds = {name: [float(best) for what, count, best in figures
                    if what.startswith(start) and int(count) == threads] for name, start in LIMITS.items()}
    return {name: max(found) for name, found in kinds.items() if found}


class Results:
    def __init__(self, rows, goals, args, statistic="median_ms"):
        """statistic: which of a row's figures of time goals are reckoned from."""
        self.rows, self.goals, self.args, self.statistic = rows, goals, args, statistic

    def with_statistic(self, statistic):
        return Results(self.rows, self.goals, self.args, statistic)

    def found(self, model, threads):
        return {row["engine"]: row for row in self.rows
                if row["model"] == model and row["threads"] == threads and not row.get("failure")}

    def failure(self, model, threads, engine):
        """Why there is no figure."""
        if model in self.args.missing:
            return "the model is not in the zoo"
        if engine in self.args.absent:
            return f"{engine}: {self.args.absent[engine]}"
        return next((f"{engine}: {row['failure']}" for row in self.rows if row.get("failure") and (
            row["model"], row["threads"], row["engine"]) == (model, threads, engine)),
                    f"{engine}: not measured")

    def peer_row(self, model, threads, peers, key):
        """The row that a goal compares with: an engine's, either form of ort's, or the best."""
        found = self.found(model, threads)
        wanted = {"best": [e for e in found if not e.startswith("own") and e != "ort-exact"],
                  "ort": ["ort", "ort-c"]}.get(peers, [peers])
        return min((found[engine] for engine in wanted if engine in found),
                   key=lambda row: row[key], default=None)

    def against_limit(self, name, own, threads):
        work = own["flops" if name == "fma" else "bytes"]
        limit = (own.get("limits") or limits_of(self.args.limits, threads)).get(name)
        return (work / own[self.statistic] / (limit * 1e6), name) if work and limit else \
            (None, "not measured")

    def reached(self, goal, threads):
        """(ratio, who it is against), or (None, why there is none)."""
        model, peers, measure = goal["model"], goal["peers"], goal["measure"]
        mine = "own-plan" if measure == "plan" else "own"
        own = self.found(model, threads).get(mine)
        if own is None:
            return None, self.failure(model, threads, mine)
        if measure in ("sessions", "new_shape"):
            return own.get(measure), peers if own.get(measure) else "not measured"
        if peers in LIMITS:
            return self.against_limit(peers, own, threads)
        key = self.statistic if measure == "time" else KEYS[measure]
        if peers.startswith("own:"):
            peer = self.found(peers[4:], threads).get("own")
        else:
            peer = self.peer_row(model, threads, peers, key)
        if peer is None or not own.get(key) or not peer.get(key):
            return None, self.failure(model, threads, peers)
        return peer[key] / own[key], peers if peers.startswith("own:") else peer["engine"]

    def geometric_mean(self, group, peers, threads):
        models = {goal["model"]: goal for goal in self.goals
                  if goal["group"] == group and goal["model"] != "*"}
        ratios = [self.reached(dict(goal, peers=peers, measure="time"), threads)[0]
                  for goal in models.values()]
        ratios = [ratio for ratio in ratios if ratio]
        if not ratios:
            return None, "not measured"
        return math.exp(statistics.fmean(map(math.log, ratios))), f"{peers}, {len(ratios)} models"

    def goal_rows(self):
        """(goal, threads, ratio or None, against or why)."""
        for goal in self.goals:
            for threads in self.args.threads if goal["measure"] == "time" else [min(self.args.threads)]:
                yield goal, threads, *(
                    self.geometric_mean(goal["group"], goal["peers"], threads) if goal["model"] == "*"
                    else self.reached(goal, threads))


def verdict(goal, ratio):
    return "not measured" if ratio is None else "met" if ratio >= float(goal["goal"]) else "missed"


# ---- the terminal ----

def print_head():
    print(f"{'model':26} {'th':>2} {'engine':10} {'median ms':>10} {'p10':>10} {'p90':>10} "
          f"{'min':>10} {'ratio':>6} {'load':>8} {'cold':>8} {'MB':>7} {'error':>9} clean")


def print_rows(rows):
    own = next((row for row in rows if row["engine"] == "own" and not row.get("failure")), None)
    for row in rows:
        head = f"{row['model']:26} {row['threads']:2} {row['engine']:10}"
        if row.get("failure"):
            print(f"{head} fails: {row['failure']}", flush=True)
            continue
        ratio = row["median_ms"] / own["median_ms"] if own else math.nan
        print(f"{head} {row['median_ms']:10.4f} {row['p10_ms']:10.4f} {row['p90_ms']:10.4f} "
              f"{row['min_ms']:10.4f} {ratio:6.2f} {row['load_ms']:8.1f} {row['cold_ms']:8.1f} "
              f"{row['peak_mb']:7.1f} {row['error']:9.2g} {row['clean']}/{row['turns']}", flush=True)


def print_goals(results):
    for goal, threads, ratio, against in results.goal_rows():
        text = "-" if ratio is None else f"{ratio:.3f}"
        print(f"goal {goal['model']:26} {threads} threads, {goal['measure']}, {goal['note']} ({against}): "
              f"{float(goal['goal']):.2f}, reached {text}: {verdict(goal, ratio)}")


# ---- docs/BENCHMARKS.md ----

def cpu_name():
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def words_of(args):
    """The command without the files it writes."""
    words = iter(args.words)
    return " ".join(["bench/peers", *(word for word in words if word not in ("--json", "--markdown") or
                                      next(words, None) is None)])


def head(rows, args):
    versions = {row["engine"]: row["version"] for row in rows if row.get("version")}
    text = ["# Benchmarks", "",
            f"Written by `{words_of(args)}` (`make bench`, `make bench-all`); what is measured and how "
            "stands at the top of that script. Times are medians in ms, ratios theirs / ours: above 1 "
            "Sardonyx wins.", "",
            f"{cpu_name()}, {os.cpu_count()} processors. " + ", ".join(
                f"{engine} {version.split('-')[0]}" for engine, version in versions.items()) + ".", ""]
    if args.absent:
        text += ["Not measured here: " + "; ".join(
            f"{engine}: {why}" for engine, why in args.absent.items()) + ".", ""]
    return text + (["```", args.limits.rstrip(), "```", ""] if args.limits else [])


def goal_table(results):
    reached = list(results.goal_rows())
    if not reached:
        return []
    counts = [verdict(goal, ratio) for goal, _, ratio, _ in reached]
    text = ["## Goals", "", ", ".join(f"{counts.count(word)} {word}" for word in (
        "met", "missed", "not measured")) + ".", "",
            "The verdicts are on medians. \"Fast tenth\" is the same ratio of the tenth percentiles: what is "
            "left when the machine is slow for a part of the turns, which engines meet by chance.", "",
            "| group | model | threads | measure | against | goal | reached | fast tenth | |",
            "|---|---|---|---|---|---|---|---|---|"]
    fast = [ratio for _, _, ratio, _ in results.with_statistic("p10_ms").goal_rows()]
    for (goal, threads, ratio, against), tenth in zip(reached, fast):
        quick = f"{tenth:.3f}" if tenth and goal["measure"] == "time" else "-"
        shown = "-" if ratio is None else f"{ratio:.3f}"
        model = "all, geometric mean" if goal["model"] == "*" else goal["model"]
        text.append(f"| {goal['group']} | {model} | {threads} | {goal['measure']} | {goal['note']}: "
                    f"{against} | {float(goal['goal']):.2f} | {shown} | {quick} | {verdict(goal, ratio)} |")
    return text + [""]


def profile(args, model, threads):
    """The operators that take the most of our time."""
    case = args.cases / model
    done = subprocess.run([args.build / "sardonyx", "profile", case / "model.onnx", "--inputs",
                           case / "test_data_set_0", "--threads", str(threads), "--top", "1"],
                          capture_output=True, text=True, check=False)
    return done.stdout.split("\n\n")[1].rstrip().split("\n")[:PROFILE_ROWS] if \
        done.returncode == 0 else []


def missed(results):
    """For each goal that is missed the profile of the model, once for a model and number of threads."""
    text, seen = [], set()
    for goal, threads, ratio, against in results.goal_rows():
        if verdict(goal, ratio) != "missed" or goal["model"] == "*":
            continue
        if not text:
            text = ["## Goals that are missed", "", "Where the time goes: `sardonyx profile`.", ""]
        text += [f"{goal['model']}, {threads} threads, {goal['measure']}, {against}: {ratio:.3f} of "
                 f"{float(goal['goal']):.2f}", ""]
        if (goal["model"], threads) not in seen and goal["measure"] == "time":
            rows = profile(results.args, goal["model"], threads)
            text += ["```", *rows, "```", ""] if rows else []
        seen.add((goal["model"], threads))
    return text


def time_cell(row, own):
    if row is None:
        return "-"
    if row.get("failure"):
        return "wrong" if row["failure"].startswith("wrong") else "fails"
    ratio = "" if own is None or row["engine"] == "own" else f" ({row['median_ms'] / own:.2f})"
    inexact = f" error {row['error']:.0e}" if row["error"] >= INEXACT else ""
    return f"{row['median_ms']:.4g}{ratio}{inexact}"


def time_table(results, engines):
    text = ["## Times", "", "An error is the largest difference to the expected output over its peak, "
            f"where it is {INEXACT:g} or more.", "", "| model | threads | " + " | ".join(engines) + " |",
            "|---|---|" + "---|" * len(engines)]
    for model, threads in dict.fromkeys((row["model"], row["threads"]) for row in results.rows):
        rows = {row["engine"]: row for row in results.rows
                if (row["model"], row["threads"]) == (model, threads)}
        own = results.found(model, threads).get("own", {}).get("median_ms")
        text.append(f"| {model} | {threads} | " + " | ".join(
            time_cell(rows.get(engine), own) for engine in engines) + " |")
    return text + [""]


def failures(results):
    """Which models an engine fails on, by reason."""
    reasons = {}
    for row in results.rows:
        if row.get("failure"):
            key = (row["engine"], row["failure"].replace("|", "/").replace("`", "'"))
            reasons.setdefault(key, []).append(row["model"])
    if not reasons:
        return []
    return ["## What fails", "", "| engine | reason | models |", "|---|---|---|"] + [
        f"| {engine} | {reason} | {' '.join(dict.fromkeys(models))} |"
        for (engine, reason), models in sorted(reasons.items())] + [""]


def start_table(results, engines):
    text = ["## Start and memory", "", "Load ms / exec to first result ms / peak MB of that process; "
            "Python's own start and memory are in the figures of the peers but ort-c and rten. own-plan "
            "loads a plan file.", "",
            "| model | " + " | ".join(engines) + " |", "|---|" + "---|" * len(engines)]
    for model in dict.fromkeys(row["model"] for row in results.rows):
        found = results.found(model, min(results.args.threads))
        text.append(f"| {model} | " + " | ".join(
            "{load_ms:.0f} / {cold_ms:.0f} / {peak_mb:.0f}".format(**found[engine])
            if engine in found else "-" for engine in engines) + " |")
    return text + [""]


def markdown(results):
    args, rows = results.args, results.rows
    engines = [engine for engine in args.engines if any(row["engine"] == engine for row in rows)]
    text = head(rows, args) + goal_table(results) + missed(results)
    text += time_table(results, [engine for engine in engines if engine != "own-plan"])
    text += failures(results) + start_table(results, engines)
    notes = (HERE / "notes.md").read_text(encoding="utf-8").split("\n", 1)[1]
    Path(args.markdown).write_text("\n".join(text) + "\n" + notes, encoding="utf-8")
