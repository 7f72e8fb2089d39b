"""What a demo shows: a live table while it runs, an account at the end."""

from rich.table import Table

from chokaq.demo.run import Progress, Verdict


class LiveTable:
    """Turns progress into a table; remembers the last two looks to show a rate."""

    def __init__(self) -> None:
        self.last: Progress | None = None
        self.rates: dict[str, float] = {}

    def render(self, now: Progress) -> Table:
        """The table of one look."""
        killed = f", child {now.killed_pid} killed" if now.killed_pid else ""
        table = Table(title=f"chokaq demo, {now.seconds:.0f} s{killed}", title_justify="left")
        for name in ("queue", "done", "of", "waiting", "running", "per s", "lag ms", "workers"):
            table.add_column(name, justify="left" if name == "queue" else "right")
        for queue, total in now.total.items():
            view = now.queues.get(queue)
            if view is None:
                table.add_row(queue, "0", str(total))
                continue
            done = view.succeeded_total + view.failed_total
            table.add_row(
                queue,
                f"{done:,}",
                f"{total:,}",
                f"{view.pending + view.scheduled:,}",
                f"{view.processing:,}",
                f"{self._rate(queue, done, now):,.0f}",
                f"{view.oldest_due_ms or 0:,}",
                str(view.live_workers),
            )
        self.last = now
        return table

    def _rate(self, queue: str, done: int, now: Progress) -> float:
        last = self.last
        if last is None or queue not in last.queues or now.seconds <= last.seconds:
            return self.rates.get(queue, 0.0)
        before = last.queues[queue].succeeded_total + last.queues[queue].failed_total
        rate = (done - before) / (now.seconds - last.seconds)
        self.rates[queue] = rate if queue not in self.rates else 0.6 * self.rates[queue] + 0.4 * rate
        return self.rates[queue]


def final_table(verdict: Verdict) -> Table:
    """Every job accounted for."""
    table = Table(title=f"Every job accounted for, {verdict.seconds:.1f} s", title_justify="left")
    columns = ("queue", "sent", "done", "failed", "zombie", "retried", "arrived", "twice", "lost", "per s")
    for name in columns:
        table.add_column(name, justify="left" if name == "queue" else "right", no_wrap=True)
    for line in verdict.queues.values():
        table.add_row(
            line.queue,
            *(f"{n:,}" for n in (line.enqueued, line.succeeded, line.failed, line.zombie, line.retried, line.received)),
            *(f"{n:,}" for n in (line.duplicates, line.lost)),
            f"{line.jobs_per_second:,.0f}",
        )
    return table


def sentences(verdict: Verdict) -> list[str]:
    """The verdict in words."""
    duplicates = sum(line.duplicates for line in verdict.queues.values())
    said = [f"lost: {verdict.lost}"]
    if verdict.killed_pid is not None:
        said.append(f"child {verdict.killed_pid} was killed while it ran {verdict.killed_running} jobs")
    if duplicates:
        explained = duplicates - verdict.unexplained
        said.append(
            f"{duplicates} duplicates: {explained} of jobs the killed child was running, {verdict.unexplained} unexplained"
        )
    if verdict.unfinished:
        said.append(f"{verdict.unfinished} jobs did not end in time")
    if verdict.worker_exit_code:
        said.append(f"the worker ended with exit code {verdict.worker_exit_code}")
    if verdict.folder:
        said.append(f"kept in {verdict.folder}")
    return said
