"""The report as one HTML page: no script, nothing loaded, every text in both languages. `page.render` makes it."""
