"""Evidence, figures and tables of the study `umts-proxies`."""
