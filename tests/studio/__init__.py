"""The web page, in a real browser.

chromium.py                starts it, and listens to what goes wrong in it
cluster.py                 the cluster and the jobs that all tests look at
test_build.py              what is shipped is what the sources make
test_drafts.py             jobs are made and repeated
test_figures.py            a figure is the same wherever it stands
test_library.py            schedules, assets, datastores, endpoints
test_logs.py               logs of all workers as one, and their list
test_manners.py            how the page speaks: first run, sign-in, browser's tab, phone
test_nodes.py              nodes side by side
test_page.py               what people do with it
test_pipelines.py          steps as a graph and in time
test_tables.py             outputs as tables
test_views.py              every view: what axe says, nothing from elsewhere, and pictures in build/studio-screenshots
test_without_services.py   jobs that have ended, while all but the API is dead
"""
