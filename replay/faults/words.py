"""What each fault model is called, in both languages. Needs no torch. Names in braces are parameters of the model."""

from __future__ import annotations

from collections.abc import Mapping

from replay.result import Words

TITLES: dict[str, Words] = {
    # rope
    "position-wrap": Words("positions are taken modulo {modulus}", "位置编号对 {modulus} 取模"),
    "position-wrap-signed": Words("positions wrap as signed numbers modulo {modulus}", "位置编号按有符号数对 {modulus} 回绕"),
    "position-clamp": Words("positions above {limit} are held at {limit}", "大于 {limit} 的位置被截断为 {limit}"),
    "position-shift": Words("positions are off by {by}", "位置编号整体偏移 {by}"),
    "position-dtype": Words("positions are held in {dtype}", "位置编号以 {dtype} 存放"),
    "position-scale": Words("positions are divided by {factor}", "位置编号被除以 {factor}"),
    "angle-dtype": Words("angles are computed in {dtype}", "旋转角以 {dtype} 计算"),
    "frequency-dtype": Words("frequencies are held in {dtype}", "频率（inv_freq）以 {dtype} 存放"),
    "table-dtype": Words("the cos/sin table is held in {dtype}", "cos/sin 表以 {dtype} 存放"),
    "other-base": Words("the table is one of base {base} (another model, or stale)", "使用了 base 为 {base} 的表（其他模型的表或旧表）"),
    "scaling-missing": Words("the scaling of the frequencies is not applied", "未应用频率缩放（YaRN 或线性缩放）"),
    "magnitude-missing": Words("YaRN's factor on cos and sin is not applied", "未应用 YaRN 的 cos/sin 幅度因子"),
    "sin-offset": Words("sines are read from column {column} of the table row", "sin 从表行的第 {column} 列开始读取"),
    "sin-negated": Words("the rotation turns the wrong way", "旋转方向相反（sin 符号错误）"),
    "pairs": Words("columns are paired as in mode {mode}", "按 {mode} 模式配对列"),
    "columns-cut": Words("only the first {rotated} columns are rotated", "只旋转了前 {rotated} 列"),
    "rotary-dim-ignored": Words("all columns are rotated although only some should be", "未按 rotary_dim 截取，旋转了全部列"),
    "half-not-written": Words("the {half} half of the rotated columns is not written", "旋转列的 {half} 一半未写出"),
    "not-rotated": Words("nothing is rotated", "完全没有旋转"),
    # attention
    "table-shift": Words("block numbers are off by {by}", "物理块号偏移 {by}"),
    "table-roll": Words("the blocks of a request are rolled by {by}", "同一请求的逻辑块顺序循环移动 {by}"),
    "table-row": Words("requests use the block table of another request (offset {by})", "请求使用了其他请求的块表（偏移 {by}）"),
    "table-wrap": Words("block numbers are taken modulo {modulus}", "物理块号对 {modulus} 取模"),
    "block-size": Words("blocks are read as if of {tokens} tokens", "按 {tokens} 个 token 的块大小读取"),
    "tail-not-masked": Words("the rest of the last block is not masked", "末块多余部分未被屏蔽"),
    "tail-dropped": Words("the last, partly filled block is left out", "未填满的末块被丢弃"),
    "context-shift": Words("the context length is off by {by}", "上下文长度偏差 {by}"),
    "context-clamp": Words("the context is cut at {limit} tokens", "上下文在 {limit} 个 token 处被截断"),
    "context-wrap": Words("the context length is taken modulo {modulus}", "上下文长度对 {modulus} 取模"),
    "window": Words("only the last {tokens} tokens are seen", "只看到最后 {tokens} 个 token"),
    "block-stale": Words("block {block} of request {request} holds what was there before", "请求 {request} 的第 {block} 块仍是旧内容"),
    "block-replaced": Words("block {block} of request {request} is read from physical block {by}", "请求 {request} 的第 {block} 块读成了物理块 {by}"),
    "block-missing": Words("block {block} of request {request} is left out", "请求 {request} 的第 {block} 块被跳过"),
    "block-unwritten": Words("block {block} of request {request} is read as zeros", "请求 {request} 的第 {block} 块读到全零（未写入）"),
    "scale-missing": Words("the logits are not scaled", "未乘 softmax 缩放系数（scale 为 1）"),
    "scale": Words("the logits are scaled by {value}", "softmax 缩放系数误为 {value}"),
    "uniform-average": Words("all tokens get the same weight", "所有 token 权重相同（等权平均）"),
    "head-dim-cut": Words("only the first {columns} columns of a head are used", "每个头只用了前 {columns} 列"),
    "heads-modulo": Words("query heads are grouped by head modulo kv_heads", "Q 头与 KV 头按取模方式对应（分组错误）"),
    "cache-layout": Words("the cache is read as [{read as}]", "KV cache 按 [{read as}] 布局读取"),
    "mask-top-left": Words("the causal mask is aligned to the top left", "因果掩码按左上对齐"),
    "mask-bottom-right": Words("the causal mask is aligned to the bottom right", "因果掩码按右下对齐"),
    "mask-missing": Words("the mask is not applied", "未应用掩码"),
    "mask-shift": Words("the mask is off by {by} tokens", "掩码偏移 {by} 个 token"),
    "mask-ignored-past": Words("the mask is ignored from key {key} on", "从第 {key} 个 key 起掩码失效"),
    "mask-inverted": Words("the mask is inverted", "掩码取反"),
    "mask-window": Words("only the last {tokens} tokens are seen", "只看到最后 {tokens} 个 token（滑窗）"),
    "keys-clamp": Words("keys after the first {limit} are left out", "只用了前 {limit} 个 key"),
    "causal-added": Words("a causal mask is applied that was not asked for", "多加了因果掩码"),
    "accumulation": Words("sums are kept in {dtype}", "累加以 {dtype} 进行"),
    # norm, matmul, activations
    "eps": Words("eps is {value}", "eps 实际为 {value}"),
    "eps-missing": Words("eps is left out", "未加 eps"),
    "square-dtype": Words("squares are computed in {dtype}", "平方以 {dtype} 计算"),
    "tail-not-normalised": Words("the last {columns} columns are left out and passed through", "最后 {columns} 列未参与归一化，直接透传"),
    "mean-over": Words("the mean is taken over the first {columns} columns", "均值只统计前 {columns} 列"),
    "mean-divisor": Words("the sum of squares is divided by {columns}", "平方和被除以 {columns}"),
    "gamma-missing": Words("gamma is not applied", "未乘 gamma"),
    "gamma-plus-one": Words("one is added to gamma", "gamma 被加 1"),
    "residual-missing": Words("the residual is not added", "未加残差"),
    "residual-added": Words("a residual is added that was not asked for", "多加了残差"),
    "mean-subtracted": Words("the mean is subtracted (LayerNorm)", "减去了均值（按 LayerNorm 计算）"),
    "k-cut": Words("the sum ends {columns} columns early", "K 维少累加了最后 {columns} 列"),
    "bias-missing": Words("the bias is not added", "未加 bias"),
    "bias-twice": Words("the bias is added twice", "bias 被加了两次"),
    "weight-nz": Words("the weight is read as FRACTAL_NZ", "权重被按 FRACTAL_NZ 格式读取"),
    "weight-transposed": Words("the weight is read transposed", "权重被按转置读取"),
    "group-shift": Words("rows use the weight of an expert {by} further", "各行使用了偏移 {by} 的专家权重"),
    "group-list-sizes": Words("the group list is taken for sizes", "group_list 被当作各组大小"),
    "group-list-ends": Words("the group list is taken for running ends", "group_list 被当作累计终点"),
    "group-first": Words("all rows use the weight of the first expert", "所有行都使用第一个专家的权重"),
    "group-last-missing": Words("the last group is not computed", "最后一组未计算"),
    "halves-swapped": Words("the halves are swapped", "两半输入互换"),
    "halves-interleaved": Words("even and odd columns are taken for the halves", "按奇偶列划分两半"),
    "gate": Words("the gate is {function}", "门函数误为 {function}"),
    "gate-only": Words("the second half is not multiplied in", "未乘第二半输入"),
    # routing and selection
    "groups-ignored": Words("the limit on expert groups is ignored", "忽略了专家分组限制"),
    "group-score": Words("groups are ranked by {by}", "专家组按 {by} 排序"),
    "bias-ignored": Words("the selection bias is ignored", "选择时忽略了 bias"),
    "bias-in-weights": Words("the selection bias gets into the weights", "bias 混入了权重"),
    "scoring": Words("scores are {function}", "打分函数误为 {function}"),
    "renormalised": Words("weights are renormalised although they should not be", "不应归一化却做了归一化"),
    "not-renormalised": Words("weights are not renormalised", "权重未归一化"),
    "scaling-factor": Words("the routing factor is {value}", "routed_scaling_factor 误为 {value}"),
    "fewer-experts": Words("only {k} experts are chosen", "只选了 {k} 个专家"),
    "index-shift": Words("indices are off by {by}", "索引偏移 {by}"),
    "index-wrap": Words("indices are taken modulo {modulus}", "索引对 {modulus} 取模"),
    "index-dtype": Words("indices are held in {dtype}", "索引以 {dtype} 存放"),
    "range-cut": Words("only the first {columns} columns are searched", "只在前 {columns} 列中查找"),
    "smallest": Words("the smallest are chosen", "选的是最小值"),
    "not-sorted": Words("the values are not in order", "结果未排序"),
    "slot-shift": Words("slots are off by {by}", "槽位偏移 {by}"),
    "slot-wrap": Words("slots are taken modulo {modulus}", "槽位对 {modulus} 取模"),
    "slots-consecutive": Words("slots are taken as consecutive from the first", "槽位被当作从首个起连续"),
    "tokens-missing": Words("the last {count} tokens are not written", "最后 {count} 个 token 未写入"),
    "columns-missing": Words("only the first {columns} columns are written", "只写入了前 {columns} 列"),
    "heads-swapped": Words("heads and columns are swapped", "头维与列维互换"),
    "not-written": Words("nothing is written", "完全没有写入"),
    # any kernel
    "nan-rows": Words("{rows} rows from row {first} on are not finite, the others are right", "自第 {first} 行起共 {rows} 行为 NaN/Inf，其余行正确"),
}


def title(name: str, params: Mapping[str, object]) -> Words:
    """The title with its parameters filled in."""
    words = TITLES.get(name)
    if words is None:
        return Words(name, name)
    shown = {key: f"{value:g}" if isinstance(value, float) else str(value) for key, value in params.items()}
    halves = {"first": "前", "second": "后"}
    chinese = {key: halves.get(value, value) for key, value in shown.items()}
    return Words(words.en.format_map(_Open(shown)), words.zh.format_map(_Open(chinese)))


class _Open(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return "?"
