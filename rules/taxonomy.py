"""The root causes a diagnosis can name: one slug a cause, with its name in both languages. The list can grow; a slug keeps its meaning."""

from __future__ import annotations

from rules.model import Text

_TABLE = """
ecc-hardware-fault|uncorrectable memory error or failed core|不可纠正的内存错误或核故障
device-lost|card lost: heartbeat, PCIe or HDC link gone|掉卡：心跳、PCIe 或 HDC 链路丢失
link-down|network port, optical or HCCS link down|网口、光链路或 HCCS 链路断开
slow-link|a link far slower than its peers|链路明显慢于同类链路
pcie-link-degraded|PCIe link below its speed or width|PCIe 链路降速或降宽
hbm-bank-fault|an HBM bank is down|HBM bank 失效
hbm-bank-imbalance|one HBM bank full while others are not|HBM bank 使用不均，单个 bank 已满
frequency-throttled|clock below nominal through heat or power|因温度或功耗降频
dvpp-unit-offline|media unit not available|DVPP 媒体单元不可用
npu-bus-error|bus error inside the card|NPU 总线错误
npu-module-fault|NPU module fault|NPU 模组故障
over-temperature|over-temperature|温度过高
power-supply-fault|power supply fault|供电故障
power-management-fault|power management fault|电源管理故障
silent-data-corruption|computes wrong without a report|静默数据错误
switch-fault|switch fault|交换机故障
cable-fault|cable or transceiver fault|线缆或光模块故障
server-hardware-fault|server hardware fault|服务器硬件故障
storage-fault|storage fault|存储故障
driver-firmware-mismatch|driver, firmware and toolkit do not pair, or a version has a known fault|驱动、固件与 CANN 版本不配套，或该版本存在已知问题
driver-load-failed|driver could not bring the device up|驱动加载失败
device-not-ready|device used before it is ready|设备未就绪即被使用
device-held-by-process|another process holds the card or its memory|其他进程占用设备或其内存
device-occupied-by-container|another container holds the card|其他容器占用设备
device-selection-invalid|device id or visible-devices setting names no present card|设备号或可见设备配置指向不存在的卡
no-device-visible|no card on the node, or none mapped|节点上没有可见的卡
device-permission|device nodes are there, but may not be used|设备节点存在但无权限使用
container-device-not-mounted|device nodes missing in the container|容器未挂载设备节点
container-libs-not-mounted|driver libraries missing in the container|容器未挂载驱动库
device-context-misuse|no device or context set in the thread|线程未设置 device 或 context
version-mismatch-cann|CANN and what is built on it do not pair|CANN 与其上层软件版本不配套
version-mismatch-torch|torch and torch_npu do not pair|torch 与 torch_npu 版本不配套
version-mismatch-framework|framework packages do not pair|框架组件之间版本不配套
python-dependency-version|a Python package of a wrong version|Python 依赖包版本不符
python-package-missing|a Python package is absent|缺少 Python 依赖包
cann-package-missing|part of CANN is not installed|CANN 组件缺失
custom-op-not-built|custom operator package absent or not built|自定义算子包未编译或未安装
missing-env-ld-library-path|environment script not sourced, or library directory missing|未加载环境变量脚本或缺少库路径
os-kernel-incompatible|operating system lacks a feature|操作系统不满足要求
model-soc-mismatch|compiled model is for another chip|离线模型与芯片型号不符
wrong-build-arguments|conversion or build called wrongly|转换或编译参数错误
onnx-export-unsupported|model part without ONNX form|模型结构无法导出 ONNX
op-compile-failure|kernel compilation fails|算子编译失败
compile-cache-corrupt|stale or damaged kernel or graph cache|编译缓存失效或损坏
hbm-oom|device memory exhausted|设备内存（HBM）不足
hbm-headroom-low|device memory nearly exhausted|设备内存余量过低
hbm-fragmentation|device memory free only in small pieces|设备内存碎片化
host-oom|host memory exhausted|主机内存不足
shm-too-small|shared memory too small|共享内存过小
kv-cache-too-small|no room for the KV cache|KV cache 空间不足
kv-cache-in-ddr|KV cache placed in DDR|KV cache 被放在 DDR
kv-cache-cross-bank|KV cache crosses HBM banks|KV cache 跨 HBM bank
hbm-ddr-domain-switch|data moves between memories every step|数据在 HBM 与 DDR 间反复搬移
host-device-copy-jitter|host-device copies cause latency peaks|主机与设备间拷贝造成时延抖动
memory-freed-in-use|memory released while in use|内存在使用中被释放
memory-leak|memory is never released|内存泄漏
resource-leak|streams, events or descriptors never released|流、事件或句柄泄漏
misread-memory-metric|decision taken from a misleading memory figure|误读内存指标
hccl-config-ranktable|rank table wrong|ranktable 配置错误
hccl-env-config|HCCL environment setting wrong|HCCL 环境变量配置错误
hccl-tls-mismatch|TLS switch differs between cards|各卡 TLS 开关不一致
cluster-config-hostname|host name or address resolution wrong|主机名或地址解析配置错误
hccl-buffsize-too-small|communication buffer too small for the operator|HCCL 通信缓冲区过小
hccl-connect-timeout|HCCL link set-up timed out|HCCL 建链超时
hccl-notify-wait-timeout|HCCL notify wait timed out|HCCL notify 等待超时
hccl-peer-exit|another rank died or never started|对端 rank 退出或未启动
kv-transfer-config|KV transfer between instances set up wrongly|实例间 KV 传输配置错误
collective-mismatch|ranks call different collectives, counts, types or orders|各 rank 集合通信调用不一致
timeout-too-short|a limit below legitimate work or skew|超时时间设置过短
port-conflict|port already taken|端口冲突
slow-rank|one rank is slower and the others wait|慢 rank 拖慢整体
comm-small-packets|communication in small packets|通信包过小
comm-misaligned|communication data misaligned|通信数据未对齐
comm-bandwidth-contention|bandwidth contention|通信带宽争抢
rdma-retransmission|RDMA retransmission|RDMA 重传
pipeline-bubble|pipeline bubbles|流水线空泡
op-shape-constraint|outside the operator's documented shapes or attributes|超出算子支持的形状或参数范围
op-dtype-unsupported|data type not supported by the operator|算子不支持该数据类型
not-supported-on-soc|not supported on this chip|该芯片不支持
kernel-launch-limit|beyond a kernel launch limit|超出 kernel 下发限制
ub-alignment|address or buffer not aligned as the core needs|地址或缓冲区未按要求对齐
aicore-oob-access|kernel touches memory outside its buffers|AI Core 访问越界
bad-input-index|index, length, block table or slot out of range|输入索引、长度或块表越界
kernel-bug-in-op|defect of a kernel|算子 kernel 缺陷
paged-attention-block-size|block size does not suit the paged-attention kernel|block size 不满足 PagedAttention 要求
rope-position-limit|position beyond what the rotary kernel can address|位置超出 RoPE 可寻址范围
rope-table-precision|rotary table of too low precision|RoPE 表精度不足
rope-not-offloaded|rotary embedding not run where asked|RoPE 未下沉到指定单元
host-fallback-operator|operator runs on the host CPU or AI CPU|算子回退到 Host CPU 或 AI CPU 执行
matmul-tiling|unsuited matmul tiling|MatMul 切分不合适
padding-waste|work wasted on padding|补齐造成算力浪费
layout-cast-overhead|layout and type conversions dominate|格式与类型转换开销过大
vector-memory-bound|vector work bound by memory|向量计算受访存限制
few-cores-used|few cores used|使用核数过少
stream-underuse|streams idle|流利用率低
dynamic-shape-recompile|kernels or graphs compiled while serving|动态形状导致反复编译
cold-start-compile|first run compiles|首次运行编译耗时
graph-capture-stream-exhausted|graph capture runs out of streams|图捕获耗尽流资源
graph-capture-illegal-op|operation not allowed in graph capture or replay|图捕获或重放中存在不允许的操作
graph-fusion-reorder|graph fusion changes the result|图融合改变了结果
framework-bug|defect of the framework above CANN|上层框架缺陷
api-misuse|wrong call order or use|接口调用方式错误
async-copy-race|missing ordering between streams|流间缺少同步
model-config|model settings that cannot work|模型配置错误
quantization-config|quantisation settings that cannot work|量化配置错误
service-config-invalid|service settings that cannot work|服务配置错误
launcher-config|launcher settings that cannot work|启动配置错误
model-file-missing|model file missing|模型文件缺失
model-file-corrupt|model file damaged|模型文件损坏
file-not-accessible|file or folder not accessible|文件或目录不可访问
disk-full|disk full|磁盘已满
os-user-missing|user without a passwd entry|系统中没有该用户
host-resource-limit|descriptors, processes or locked memory limited|主机资源限制
service-unreachable|service not reachable|服务不可达
service-overload|service overloaded|服务过载
bad-request|request that cannot be served|请求不合法
host-device-tensor-mix|host tensor given to a device operator|主机张量被传给设备算子
numerical-nan|NaN from data or kernels|数值 NaN
numerical-overflow-mode|overflow or saturation mode|数值溢出模式
precision-loss-low-bits|number format too coarse|低比特精度损失
data-pipeline-error|input pipeline fails|数据处理流程失败
data-pipeline-slow|input pipeline is slow|数据处理流程过慢
host-process-hang|a host process hangs|主机进程挂起
host-cpu-binding|CPU binding wrong|CPU 绑核错误
host-bound|host cannot feed the device|Host 下发受限
launch-blocking|launches are made blocking|算子下发被设为同步
stream-sync-overuse|too many synchronisations|同步过多
python-gc-pause|Python garbage collection pauses|Python GC 停顿
logging-overhead|logging slows the work|日志开销过大
profiler-config|profiling set up wrongly|性能采集配置错误
profile-not-analysed|raw profile not analysed|性能原始数据未解析
profile-truncated|profile cut off|性能数据不完整
healthy|nothing is wrong|无异常
unknown|unknown|未知
"""

ROOT_CAUSES: dict[str, Text] = {slug: Text(en, zh) for slug, en, zh in (line.split("|") for line in _TABLE.strip().splitlines())}
"""Slug -> name in both languages."""
