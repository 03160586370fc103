"""Readers of what is captured of tensors on Ascend: msprobe, CANN dumps, ATB dumps, torch.save, and the [AIC_INFO] lines of plog.

Nothing is ever unpickled: a `.pt` file is read with torch.load(weights_only=True), or refused with the reason."""
