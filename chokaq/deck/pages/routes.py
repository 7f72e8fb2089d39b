"""Which address shows which page."""

from nicegui import app, ui
from starlette.requests import Request

from chokaq.deck import theme
from chokaq.deck.desk import Desk
from chokaq.deck.pages.audit import AuditScreen
from chokaq.deck.pages.circuits import CircuitsPage
from chokaq.deck.pages.job import JobScreen
from chokaq.deck.pages.jobs import JobsScreen
from chokaq.deck.pages.nodes import link
from chokaq.deck.pages.overview import overview_page
from chokaq.deck.pages.part import problem
from chokaq.deck.pages.queues import QueuesPage
from chokaq.deck.pages.screen import Screen
from chokaq.deck.pages.settings import SettingsPage
from chokaq.deck.pages.workers import WorkersPage
from chokaq.operations.errors import OperationError

PATIENCE = 30.0
"""Seconds to build a page; its data may come later."""


def install() -> None:
    """Tell NiceGUI about the files of the pages. Call it once, before the first request."""
    app.add_static_files(theme.ROUTE, theme.FILES, max_cache_age=86_400)


def register(desk: Desk) -> None:
    """Tell NiceGUI about the pages of this desk. Call it once for each, before the first request."""
    below = desk.base.removeprefix(desk.root)

    @ui.page(f"{below}/", response_timeout=PATIENCE)
    async def overview(request: Request) -> None:
        await overview_page(Screen(desk, request, "Overview", "overview"), request.query_params.get("span", "hour"))

    @ui.page(f"{below}/queues", response_timeout=PATIENCE)
    async def queues(request: Request) -> None:
        await QueuesPage(Screen(desk, request, "Queues", "queues"), request.query_params.get("queue")).open()

    @ui.page(f"{below}/jobs", response_timeout=PATIENCE)
    async def jobs(request: Request) -> None:
        screen = Screen(desk, request, "Jobs", "jobs")
        try:
            page = JobsScreen(screen, dict(request.query_params))
        except OperationError as error:
            screen.heading("Jobs")
            screen.place(
                problem(f"This address means no list of jobs: {error}", link(screen.url("/jobs"), "Show all jobs"))
            )
            return
        await page.open()

    @ui.page(f"{below}/jobs/{{job_id}}", response_timeout=PATIENCE)
    async def job(request: Request, job_id: str) -> None:
        await JobScreen(Screen(desk, request, f"Job {job_id[-6:]}", "jobs"), job_id).open()

    @ui.page(f"{below}/workers", response_timeout=PATIENCE)
    async def workers(request: Request) -> None:
        await WorkersPage(
            Screen(desk, request, "Workers", "workers"), ended=bool(request.query_params.get("ended"))
        ).open()

    @ui.page(f"{below}/circuits", response_timeout=PATIENCE)
    async def circuits(request: Request) -> None:
        await CircuitsPage(Screen(desk, request, "Circuits", "circuits"), dict(request.query_params)).open()

    @ui.page(f"{below}/audit", response_timeout=PATIENCE)
    async def audit(request: Request) -> None:
        await AuditScreen(Screen(desk, request, "Audit", "audit"), dict(request.query_params)).open()

    @ui.page(f"{below}/settings", response_timeout=PATIENCE)
    async def settings(request: Request) -> None:
        await SettingsPage(Screen(desk, request, "Settings", "settings")).open()
