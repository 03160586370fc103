"""Secrets as they really stand in logs, tables and commands: each line names what of it must be gone."""

from __future__ import annotations

import pytest

from forensics.redact.engine import Learner, Redactor
from forensics.redact.names import Names
from tests.unit.planted import plant

LINES = r"""scp alice7@db-prod-01:/data/x .	alice7 db-prod-01
"host": "10.1.2.3", tcp://10.1.2.4:2379 10.1.2.5-10.1.2.9 from ip_10.1.2.6.log	10.1.2.3 10.1.2.4 10.1.2.5 10.1.2.9 10.1.2.6
[::ffff:10.1.2.13]:80	10.1.2.13
password: 'p@ss w0rd!'	w0rd
-e MYSQL_ROOT_PASSWORD=xyz123 "password":"abC99" {\"password\": \"qwe88\"}	xyz123 abC99 qwe88
export HF_TOKEN="hf_abcdefghijklmnopqrst"	hf_abcdefghijklmnopqrst
Authorization: Basic dXNlcjpwYXNz	dXNlcjpwYXNz
curl -u admin:secretpw9 https://x.example.com	secretpw9
git clone https://zhang3:tok77x@gitlab.acme.cn/x.git	zhang3 tok77x acme
AccessKeyId=LTAI5tAbCdEfGhIjKlMn, AccessKeySecret=0a1B2c3D4e5F6g7H8i9J	LTAI5tAbCdEfGhIjKlMn 0a1B2c3D4e5F6g7H8i9J
X-Auth-Token: MIIEabcdefg123	MIIEabcdefg123
  File "/home/张三/work/a.py"	张三
drwxr-xr-x 2 wangwei hpcgroup 4096 Mar 3 a.log	wangwei hpcgroup
wangwu    2106  99.0  1.2 123456 7890 ?  Sl 10:00 python train.py	wangwu
zhaoliu   2106  1  0 10:00 ?  00:00:01 python train.py	zhaoliu
 2106  1 sunqiqi Sl Mon Mar 12 10:00:00 2026 10:00 python	sunqiqi
Product Serial: 2102312ABC10K8000123, SN=2102312XYZ, "sn":"X77120001"	2102312ABC10K8000123 2102312XYZ X77120001
messages=[{'role': 'user', 'content': 'my secret diagnosis'}]	diagnosis
{"messages":[{"role":"user","content":"tell \"me\" about project falcon"}],"max_tokens":5}	falcon
prompt: 'first line of a long story	story
endpoint=minio.acme-corp.cn:9000	acme-corp
nfs77.acme:/export/data on /mnt/data type nfs4 (rw)	nfs77
\\filesrv01\share\x	filesrv01
10.1.2.33   gpu-a17 gpu-a17.acme.corp	10.1.2.33 gpu-a17
Node:         gpu-b22/10.9.9.1	gpu-b22 10.9.9.1
gpu-c33 slots=8	gpu-c33
torchrun --master_addr gpu-d44 --rdzv_endpoint=gpu-e55:29500	gpu-d44 gpu-e55
ssh: Could not resolve hostname gpu-f66: Name or service not known	gpu-f66
SLURMD_NODENAME=cn0123	cn0123
wandb: Currently logged in as: lisi88 (acme-team). Use `wandb login`	lisi88
WANDB_API_KEY=0123456789abcdef0123456789abcdef01234567	0123456789abcdef0123456789abcdef01234567
redis://:pAssw0rdX@10.2.2.2:6379/0	pAssw0rdX
jdbc:mysql://10.2.2.3/db?user=maria&password=Tiger77	Tiger77 maria
kubectl --token=eyJhbGciOiJSUzI1NiIs.eyJpc3MiOiJrd.abc-def get pods	eyJhbGciOiJSUzI1NiIs
openssl passin pass:Geh31m00	Geh31m00
ssh_key: -----BEGIN RSA PRIVATE KEY-----\nMIIEabcdefghijklmnop\n-----END RSA PRIVATE KEY-----	MIIEabcdefghijklmnop
Mar 12 14:31:07 cn77-x sshd[221]: Failed password for invalid user hacker9 from 203.0.113.9 port 22	cn77-x hacker9 203.0.113.9
2026-03-12T14:31:07.1+08:00 cn78-y kubelet[221]: start	cn78-y
<30>Mar 12 14:31:07 cn79-z dockerd: x	cn79-z
container_id=abcdef123456 containerID: docker://1122334455667788990011223344556677889900112233445566778899001122	abcdef123456 1122334455667788990011223344556677889900112233445566778899001122
LLMEngine request_id='cmpl-1', prompt="What is 'X'?", sampling_params=SamplingParams(n=1)	What
Prompt: Hello my name is Bob, Generated text: ' and I like'	Bob like
link/ether 0c:42:a1:55:66:77 brd ff:ff:ff:ff:ff:ff	0c:42:a1:55:66:77
dev mac 0c42.a155.6688 learned	0c42.a155.6688
inet6 fe80::e42:a1ff:fe55:6677/64 scope link	fe80::e42:a1ff:fe55:6677
http_proxy=http://proxyuser:Pr0xyPw@proxy.acme.net:3128	proxyuser Pr0xyPw acme
git config user.email li.si@acme-inc.cn user.name "Li Si"	li.si@acme-inc.cn
ServiceAccount secret: "k8s-Sup3r-Secret"	k8s-Sup3r-Secret
lsof: can't stat /home/mario_rossi/.cache; C:\\Users\\luigi\\x	mario_rossi luigi
machine-id: 0123456789abcdef0123456789abcdee	0123456789abcdef0123456789abcdee
NDie ID : 20A1B2C3 44556677 8899AABB CCDDEEFF 00112233	8899AABB
license_key = AAAA-BBBB-CCCC-1234	AAAA-BBBB-CCCC-1234
--api_key sk-proj-abcdefghijklmnop1234 --token abc123def456	sk-proj-abcdefghijklmnop1234 abc123def456
(Worker pid=3, ip=10.3.3.3) hi	10.3.3.3"""
"""A line, a tab, and its secrets."""


def redacted(text: str) -> str:
    learner = Learner(frozenset({"error", "runtime"}))
    learner.read(text.encode() + b"\n")
    return Redactor(Names(b"k" * 32), learner.learned).lines(text.encode() + b"\n").decode()


@pytest.mark.parametrize("line", LINES.strip("\n").split("\n"))
def test_no_secret_of_the_line_is_left(line: str) -> None:
    text, _, secrets = line.rpartition("\t")
    out = redacted(text)
    assert secrets and not [secret for secret in secrets.split() if secret in out], out


def test_secrets_are_gone_whatever_stands_around_them() -> None:
    """In JSON, behind a container's prefix, in colours, in brackets."""
    for form, line, secrets in plant(120, seed=7):
        anchored = form in ("syslog-host", "container-12")
        quoted = line.replace("\\", "\\\\").replace('"', '\\"')
        for text in (line + " .", line if anchored else f"2026-03-12T14:31:07.1Z stderr F {line}", line if anchored else f'{{"log": "{quoted}"}}'):
            out = redacted(text)
            assert not [secret for secret in secrets if secret in out], (form, out)
