"""The Deck: see everything, repair anything, from a browser. Needs the extra `chokaq[deck]`.

The parts, from the store up: `lanes` (threads with a session each), `live` (what changed, told to who looks), `reads` and
`actions` (what pages and the API may ask and do), `access` (who may), `desk` (all of them in one object), `api` and `pages` (what
is served), `site` (the whole ASGI application) and `program` (the process around it).
"""
