//! From a frame to an answer: the header, the table's row, the shape check, the decoder, and who
//! answers.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages as m;
use kafka_protocol::protocol::Encodable;

use self::asked::{Asked, envelope_frame};
use super::api_table::{self, API_VERSIONS_KEY, Api};
use super::api_versions;
use super::budget::{Budget, FREE_BYTES, Turn};
use super::connection::{Closing, Peer, Service, Started, Weight};
use super::core::{Core, Request};
use super::envelope::{self, Forwarded};
use super::frame::{self, HeaderStart};
use super::log_levels::LogLevels;
use super::shape::Checked;
use super::{describe_cluster, permissions, refusals};
use crate::controller::authorize::{Asker, Audit, Operation, Resource};
use crate::controller::configs::describe;
use crate::controller::{self, Settings, acls, scram, tokens};
use crate::raft;
use crate::records::rpc::ApiVersionsRequest;
use crate::types::{ApiError, ErrorCode, Principal, SecurityProtocol};

mod asked;
mod submit;

/// Who asks, and at which version.
#[derive(Debug)]
pub(crate) struct Ctx<'a> {
    pub(crate) version: i16,
    pub(crate) cluster_id: &'a str,
    pub(crate) listener: &'a Arc<str>,
    pub(crate) client_id: Option<&'a str>,
    pub(crate) principal: &'a Principal,
    pub(crate) address: IpAddr,
    /// Of the listener on which the (outer) request came in.
    pub(crate) protocol: SecurityProtocol,
    pub(crate) forwarded: bool,
    pub(crate) key: i16,
    pub(crate) request: &'static str,
}

impl Ctx<'_> {
    /// Who asks, for the rules.
    fn context(&self) -> controller::Context {
        controller::Context {
            principal: self.principal.clone(),
            client_address: Some(self.address),
            client_id: self.client_id.unwrap_or_default().to_owned(),
            listener: self.listener.to_string(),
            protocol: self.protocol,
            forwarded: self.forwarded,
            request: self.request,
        }
    }

    /// Who asks, for the authorizer.
    pub(crate) fn asker(&self) -> Asker<'_> {
        Asker {
            principal: self.principal,
            address: Some(self.address),
            request: self.request,
        }
    }
}

/// A request that the listener answers itself.
#[derive(Debug)]
pub(crate) enum Local {
    ApiVersions(ApiVersionsRequest),
    DescribeAcls(m::DescribeAclsRequest),
    DescribeCluster(m::DescribeClusterRequest),
    DescribeConfigs(m::DescribeConfigsRequest),
    DescribeDelegationToken(m::DescribeDelegationTokenRequest),
    DescribeUserScramCredentials(m::DescribeUserScramCredentialsRequest),
    Envelope(m::EnvelopeRequest),
}

/// A decoded request.
#[derive(Debug)]
pub(crate) enum Call {
    /// Answered here.
    Local(Local),
    /// For the core.
    Core(Box<Request>),
    /// Answered by its own form: the encoded body of the answer.
    Answered(BytesMut),
}

impl Call {
    /// A raft request, or its answer at once when it is not addressed to this partition.
    pub(crate) fn raft<R: Encodable>(
        parsed: Result<raft::Request, R>,
        ctx: &Ctx<'_>,
    ) -> anyhow::Result<Self> {
        match parsed {
            Ok(request) => Ok(Self::for_quorum(request, ctx)),
            Err(answer) => Self::answered(&answer, ctx.version),
        }
    }

    /// An answer that needs nobody.
    pub(crate) fn answered<R: Encodable>(answer: &R, version: i16) -> anyhow::Result<Self> {
        let mut body = BytesMut::new();
        answer.encode(&mut body, version)?;
        Ok(Self::Answered(body))
    }

    /// A raft request.
    pub(crate) fn for_quorum(request: raft::Request, ctx: &Ctx<'_>) -> Self {
        Self::Core(Box::new(Request::Raft {
            listener: Arc::clone(ctx.listener),
            request,
        }))
    }

    /// A request for the active controller.
    pub(crate) fn controller(request: controller::Request, ctx: &Ctx<'_>) -> Self {
        Self::Core(Box::new(Request::Controller {
            version: ctx.version,
            context: Box::new(ctx.context()),
            request,
        }))
    }
}

/// The service of every listener.
pub(crate) struct Dispatch {
    pub(crate) core: Arc<dyn Core>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) levels: LogLevels,
    /// That of all connections.
    pub(crate) budget: Budget,
}

fn garbage(what: impl Into<String>) -> Closing {
    Closing::Garbage(what.into())
}

fn no_body(api: &Api, version: i16, why: &dyn std::fmt::Display) -> Closing {
    garbage(format!("a body that is no {} v{version}: {why}", api.name))
}

/// The row of an API version, or why the connection ends. ApiVersions is served at every version.
fn admitted(header: HeaderStart) -> Result<&'static Api, Closing> {
    let HeaderStart {
        api_key, version, ..
    } = header;
    let Some(api) = api_table::find(api_key) else {
        return Err(garbage(format!(
            "unknown API {api_key} (version {version})"
        )));
    };
    if !api.serves(version) && api_key != API_VERSIONS_KEY {
        return Err(garbage(format!(
            "version {version} of {}, which is served from {} to {}",
            api.name, api.min, api.max
        )));
    }
    Ok(api)
}

/// A frame that was looked at once, from its first byte to its last where it may be decoded.
pub(crate) struct Weighed {
    api: &'static Api,
    header: HeaderStart,
    /// `None` for a version that is not served: the header's form is that of a version nobody here
    /// knows, and only its start is read.
    served: Option<Served>,
}

struct Served {
    client_id: Option<String>,
    body: Bytes,
    /// The same to be decoded; `None` when it has too many items.
    checked: Option<Checked>,
}

impl Service for Dispatch {
    type Weighed = Weighed;

    fn admit(&self, header: &[u8]) -> Result<(), Closing> {
        let mut header = Bytes::copy_from_slice(header);
        let header = HeaderStart::parse(&mut header).map_err(|f| garbage(f.to_string()))?;
        admitted(header).map(|_| ())
    }

    fn weigh(&self, mut body: Bytes) -> Result<(Weight, Weighed), Closing> {
        let bytes = body.len();
        let header = HeaderStart::parse(&mut body).map_err(|f| garbage(f.to_string()))?;
        let api = admitted(header)?;
        let version = header.version;
        let mut weighed = Weighed {
            api,
            header,
            served: None,
        };
        if !api.serves(version) {
            let weight = Weight {
                bytes,
                alone: false,
                turn: None,
            };
            return Ok((weight, weighed));
        }
        let client_id = frame::parse_header_rest(&mut body, api.flexible(version))
            .map_err(|fault| garbage(format!("a header of {}: {fault}", api.name)))?;
        let checked = api.checked(&body, version);
        let checked = checked.map_err(|misfit| no_body(api, version, &misfit))?;
        let outer = checked.as_ref().map_or(0, |it| it.size().decoded_bytes);
        let inner = if api.forwards() {
            envelope::inner_bytes(&body)
        } else {
            0
        };
        // Its answer may say something of each item.
        let bytes = bytes + 2 * (outer + inner);
        let weight = Weight {
            bytes,
            alone: api.alone,
            turn: if api.describes {
                Some(Turn::Describe)
            } else {
                (bytes > FREE_BYTES).then_some(Turn::Read)
            },
        };
        weighed.served = Some(Served {
            client_id,
            body,
            checked,
        });
        Ok((weight, weighed))
    }

    fn start(&self, peer: &mut Peer, frame: Weighed) -> Result<Started, Closing> {
        let Weighed {
            api,
            header,
            served,
        } = frame;
        let asked = Asked {
            api,
            version: header.version,
            correlation_id: header.correlation_id,
            body: Checked::default(),
            envelope: None,
            loggers: Vec::new(),
        };
        let Some(served) = served else {
            let answer = api_versions::unsupported();
            return Ok(Started::Answer(asked.answer(|out| answer.encode(out, 0))));
        };
        let Served {
            client_id,
            body,
            checked,
        } = served;
        peer.client.client_id.clone_from(&client_id);
        let ctx = Ctx {
            version: header.version,
            cluster_id: &self.settings.cluster_id,
            listener: &Arc::clone(&peer.listener),
            client_id: client_id.as_deref(),
            principal: &Principal::default(),
            address: peer.address.ip(),
            protocol: peer.protocol,
            forwarded: false,
            key: api.key,
            request: api.name,
        };
        let Some(body) = checked else {
            let answer = self.refuse_unread(asked, &body, &ctx);
            return answer
                .map(Started::Answer)
                .map_err(|fault| no_body(api, header.version, &fault));
        };
        let asked = Asked {
            body: body.clone(),
            ..asked
        };
        let call = (api.decode)(body, &ctx);
        let call = call.map_err(|error| no_body(api, header.version, &error))?;
        if let Err(error) = self.authorized(api, &ctx) {
            return Ok(Started::Answer(asked.refuse(&error)));
        }
        Ok(match call {
            Call::Local(Local::Envelope(request)) => self.open(peer, asked, request),
            Call::Local(local) => Started::Answer(self.answer(peer, &asked, &ctx, local)),
            Call::Core(request) => self.ask(asked, &ctx, request),
            Call::Answered(bytes) => Started::Answer(asked.answer(|out| {
                out.put(bytes);
                Ok(())
            })),
        })
    }
}

impl Dispatch {
    /// Refuses a request with too many items to be read: in the place for the whole request if its
    /// answer has one, or else of the first item, on which clients find out what is wrong.
    ///
    /// # Errors
    /// The body is none of this API, as far as it is looked at.
    fn refuse_unread(&self, mut asked: Asked, body: &[u8], ctx: &Ctx<'_>) -> anyhow::Result<Bytes> {
        let api = asked.api;
        tracing::debug!(
            "a {} with more than {} items is refused unread (from {})",
            api.name,
            api.items_max,
            ctx.address
        );
        asked.body = refusals::first_items(api, body, asked.version)?;
        let error = self.authorized(api, ctx).err();
        Ok(asked.refuse(&error.unwrap_or_else(|| {
            let text = format!("More than {} items in one request.", api.items_max);
            ApiError::new(ErrorCode::PolicyViolation, text)
        })))
    }

    /// Refuses what whoever asks may not ask for.
    fn authorized(&self, api: &Api, ctx: &Ctx<'_>) -> Result<(), ApiError> {
        permissions::check(api, ctx, &self.settings, || self.core.published())
    }

    /// Answers what needs no core.
    fn answer(&self, peer: &mut Peer, asked: &Asked, ctx: &Ctx<'_>, local: Local) -> Bytes {
        let version = asked.version;
        match local {
            Local::ApiVersions(request) => {
                let published = self.core.published();
                let supported = self.settings.supported_features.iter();
                let supported = supported.map(|(name, range)| (name.as_str(), *range));
                let answer = api_versions::answer(&request, version, &published, supported);
                if version >= 3 && answer.error_code == 0 {
                    let software = (
                        request.client_software_name,
                        request.client_software_version,
                    );
                    peer.client.software = Some(software);
                }
                // Version 5 changed the request only.
                asked.answer(|out| answer.encode(out, version.min(4)))
            }
            Local::DescribeAcls(request) => {
                let published = self.core.published();
                asked.tell(acls::describe(&published.image, &self.settings, &request))
            }
            Local::DescribeCluster(request) => {
                let published = self.core.published();
                let settings = &self.settings;
                asked.tell(describe_cluster::answer(
                    &request, ctx, settings, &published,
                ))
            }
            Local::DescribeConfigs(request) => {
                let published = self.core.published();
                let (image, loggers) = (&published.image, self.levels.now());
                let (settings, asker) = (&self.settings, ctx.asker());
                asked.tell(describe::describe(
                    image, settings, &loggers, asker, &request,
                ))
            }
            Local::DescribeDelegationToken(request) => {
                let published = self.core.published();
                let context = ctx.context();
                let allows = |operation, resource: Resource<'_>| {
                    let question = (operation, resource);
                    permissions::allows(question, ctx, &self.settings, &published, Audit::Both)
                };
                let (image, settings) = (&published.image, &self.settings);
                asked.tell(tokens::describe(
                    image, settings, version, &context, &request, allows,
                ))
            }
            Local::DescribeUserScramCredentials(request) => {
                let published = self.core.published();
                asked.tell(scram::describe(&published.image, &request))
            }
            // An envelope is opened by `open`, and is never inside another.
            Local::Envelope(_) => asked.refuse(&ErrorCode::InvalidRequest.into()),
        }
    }

    /// Starts the request inside an envelope.
    fn open(&self, peer: &Peer, outer: Asked, request: m::EnvelopeRequest) -> Started {
        let refuse = |code| {
            Started::Answer(envelope_frame(
                outer.correlation_id,
                &envelope::refuse(code),
            ))
        };
        let forwarded = match envelope::open(request) {
            Ok(forwarded) => forwarded,
            Err(code) => {
                tracing::debug!("{} sent an envelope that is refused: {code}", peer.address);
                return refuse(code);
            }
        };
        let Forwarded {
            principal,
            address,
            client_id,
            header,
            api,
            body,
            checked,
        } = forwarded;
        let ctx = Ctx {
            version: header.version,
            cluster_id: &self.settings.cluster_id,
            listener: &peer.listener,
            client_id: client_id.as_deref(),
            principal: &principal,
            address,
            protocol: peer.protocol,
            forwarded: true,
            key: api.key,
            request: api.name,
        };
        let asked = Asked {
            api,
            version: header.version,
            correlation_id: header.correlation_id,
            body: checked.clone().unwrap_or_default(),
            envelope: Some(outer.correlation_id),
            loggers: Vec::new(),
        };
        let Some(checked) = checked else {
            return match self.refuse_unread(asked, &body, &ctx) {
                Ok(answer) => Started::Answer(answer),
                Err(_) => refuse(ErrorCode::UnsupportedVersion),
            };
        };
        let call = (api.decode)(checked, &ctx);
        if let (Ok(_), Err(error)) = (&call, self.authorized(api, &ctx)) {
            return Started::Answer(asked.refuse(&error));
        }
        match call {
            Ok(Call::Core(request)) => self.ask(asked, &ctx, request),
            Ok(Call::Answered(bytes)) => Started::Answer(asked.answer(|out| {
                out.put(bytes);
                Ok(())
            })),
            Ok(Call::Local(_)) => refuse(ErrorCode::InvalidRequest),
            Err(error) => {
                tracing::debug!(
                    "{} forwarded a {} of {address} that cannot be read: {error}",
                    peer.address,
                    api.name
                );
                refuse(ErrorCode::UnsupportedVersion)
            }
        }
    }

    /// Asks the core, except about the loggers of this process: those are no metadata, and whoever
    /// leads or does not, this node answers about its own.
    fn ask(&self, mut asked: Asked, ctx: &Ctx<'_>, mut request: Box<Request>) -> Started {
        let Request::Controller {
            request: controller::Request::IncrementalAlterConfigs(alter),
            ..
        } = &mut *request
        else {
            return self.submit(asked, request);
        };
        let allowed = || {
            let question = (Operation::ClusterAction, Resource::Cluster);
            let published = self.core.published();
            permissions::allows(question, ctx, &self.settings, &published, Audit::Both)
        };
        match self.levels.take(self.settings.node_id, alter, allowed) {
            Err(error) => Started::Answer(asked.refuse(&error)),
            Ok(altered) if alter.resources.is_empty() && !altered.responses.is_empty() => {
                let answer = m::IncrementalAlterConfigsResponse::default();
                let answer = answer.with_responses(altered.responses);
                Started::Answer(asked.answer(|out| answer.encode(out, asked.version)))
            }
            Ok(altered) => {
                asked.loggers = altered.responses;
                self.submit(asked, request)
            }
        }
    }
}

#[cfg(test)]
#[path = "dispatch_tests.rs"]
pub(super) mod tests;

#[cfg(test)]
#[path = "envelope_tests.rs"]
mod envelope_tests;

#[cfg(test)]
mod unread_tests;
