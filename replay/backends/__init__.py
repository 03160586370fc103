"""Where a kernel can be run: npu (operators of torch_npu), cuda and cpu (operators of PyTorch), triton-interpreter (a Triton kernel of
one's own, without any device). What runs in the worker needs torch alone."""
