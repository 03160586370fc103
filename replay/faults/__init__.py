"""Parametric fault models: for each kernel, the ways it is known or likely to go wrong, with the parameter on a grid or found out of the
observed output. A model predicts the whole output in float64; the referee only compares."""
